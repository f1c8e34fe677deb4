"""What lesson 00 asks, to show how the lessons work."""

from __future__ import annotations

from typing import Any

from muser_viz.asked import Question, Task
from muser_viz.bill import footprint

QUESTIONS = {
    "rows and tokens": Question(
        "A sliding plane has taken 5,000 tokens. How many rows does it hold?",
        2048,
        "a sliding plane is a ring of 2,048 rows, however many tokens it has taken.",
    ),
}


def _one_row(answer: Any) -> str:
    row = footprint(context=1).row
    if answer == row:
        return ""
    if answer == 2 * row:
        return f"{answer:,} bytes are K and V together; the question is of K alone"
    if answer == row // 2:
        return f"{answer} is the number of elements; each takes two bytes"
    return f"{answer!r} is not it: multiply KV heads, head dim and the two bytes of an f16"


TASKS = {
    "one row": Task(
        "How many bytes is one K row of one layer: 2 KV heads of 128 f16 elements?",
        _one_row,
        "answer = 2 * 128 * 2",
    ),
}
