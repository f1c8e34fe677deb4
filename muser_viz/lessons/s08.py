"""What lesson 08 asks (§15.8)."""

from __future__ import annotations

from typing import Any

from muser_viz.asked import Question, Task
from muser_viz.link import Link, Prefill

QUESTIONS = {
    "most wakes": Question(
        "Which of the four schedules wakes the link most often?",
        "by chunk",
        "a chunk's rows are on the wire in 7 ticks and the next ones are 520 ticks away, so the link "
        "sleeps after every chunk; layer by layer the same bytes leave no gap as long as 50 ticks.",
        ("held", "rings early", "by chunk", "by layer"),
    ),
    "blocks": Question(
        "A window of 2,048 tokens, blocks of 16 tokens. How many blocks must the pool have?",
        129,
        "a window that starts inside a block also ends inside one: 127 whole blocks and parts of two more.",
    ),
    "which replay": Question(
        "Rows are stored as f32, as f16 or as Q8_0, and the stored bytes are read twice. "
        "Where does the second read give the first one's bits?",
        "all three",
        "decoding is a function of the bytes; a loss of precision happens once, when the rows are stored.",
        ("f32 only", "f32 and f16", "all three"),
    ),
    "no fence": Question(
        "A full ring takes token 3,000, and attention reads its row before the store has run. "
        "What does it find there?",
        "token 952, which has left the window",
        "the row is the oldest token's until the store overwrites it, and nothing marks a row as new or old.",
        ("zeros", "token 2,999", "token 952, which has left the window", "nothing: the read fails"),
    ),
}

SLOT_ELEMENTS = 913_309_696


def _idle(answer: Any) -> str:
    prefill = Prefill()
    bursts = prefill.bursts("by layer")
    wakes = [Link(idle_after=after).send(bursts).wakes for after in (answer, max(1, answer - 1))]
    if wakes[0] > 1:
        return f"with idle_after={answer} the link wakes {wakes[0]:,} times"
    if answer > 1 and wakes[1] == 1:
        return f"{answer} is enough, and so is {answer - 1}"
    return ""


def _blocks(answer: Any) -> str:
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        return "give two numbers: (the most blocks held, blocks given back)"
    if answer[0] != 65:
        return f"{answer[0]} blocks is not the most: let the window begin inside a block of 32"
    if answer[1] != 92:
        return f"{answer[1]} blocks is not it: count those whose tokens all lie before token 2,952"
    return ""


def _slot(answer: Any) -> str:
    if answer == SLOT_ELEMENTS:
        return f"{answer:,} is half the f16 slot: a byte an element; each block has a scale too"
    if answer == SLOT_ELEMENTS // 32 * 34:
        return f"{answer:,} is the slot in blocks of 32; here a block has 16 elements in 18 bytes"
    if answer != SLOT_ELEMENTS // 16 * 18:
        return f"{answer!r} is not it: the slot has {SLOT_ELEMENTS:,} elements; count the blocks"
    return ""


TASKS = {
    "idle link": Task(
        "Layer by layer, the link woke once. What is the smallest idle_after at which that is still so? "
        "(rate, wake and prefill as in the lesson)",
        _idle,
        "answer = 40  # a full layer's rows every 4 layers of 10 ticks, 1 tick of them sending: gaps of 39",
    ),
    "blocks of 32": Task(
        "The window of 2,048 with blocks of 32 tokens, after 5,000 tokens: "
        "(the most blocks held at a time, blocks given back)",
        _blocks,
        "answer = (2048 // 32 + 1, (5000 - 2048) // 32)  # 65 and 92",
    ),
    "smaller blocks": Task(
        "One slot at 131,072 tokens is 1,826,619,392 B in f16. "
        "How many bytes is it in 8-bit blocks of 16 elements with an f16 scale each?",
        _slot,
        "answer = 1_826_619_392 // 2 // 16 * (16 + 2)  # 1,027,473,408, 0.5625 of the f16 slot",
    ),
}
