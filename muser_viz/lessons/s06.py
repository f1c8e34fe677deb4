"""What lesson 06 asks (§15.6)."""

from __future__ import annotations

from typing import Any

from muser_viz.asked import Question, Task

QUESTIONS = {
    "packed restore": Question(
        "The same snapshot is restored from row 0 on instead. What is different?",
        "the logits' last bits",
        "the origins still find every token and its score is the same; "
        "only the order of the sums is another.",
        ("nothing", "some tokens are not found", "a token's score", "the logits' last bits"),
    ),
}


def _rotation(answer: Any) -> str:
    if answer == 5000 - 2048:
        return f"{answer:,} is origin_logical; take it modulo the capacity"
    if answer != (5000 - 2048) % 2048:
        return f"{answer!r} is not it: find the token at the front of the window first"
    return ""


TASKS = {
    "rotation": Task(
        "A ring of 2,048 rows took 5,000 tokens, one at a time from 0. "
        "At which rotation must it be restored?",
        _rotation,
        "answer = (5000 - 2048) % 2048  # origin_logical is 2,952; the rotation is 904",
    ),
}
