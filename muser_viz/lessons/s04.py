"""What lesson 04 asks (§15.4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from muser_viz.asked import Question, Task
from muser_viz.layout import Layout
from muser_viz.threads import BATCH, StoreLaunch

QUESTIONS = {
    "told": Question(
        "A ring of 2,048 rows has taken 3,000 tokens; token 3,000 is next. "
        "Which of these numbers reaches the one-row kernel?",
        "952, the row to write",
        "its two scalars are kv_dim and write_index; "
        "the ring has already turned position, capacity and len into a row.",
        (
            "3,000, the token's position",
            "2,048, the capacity",
            "952, the row to write",
            "2,048, the live rows",
        ),
    ),
    "odd number": Question(
        "An element of K is 2,049 in f32. What number does the plane hold after the store?",
        2048,
        "f16 has 11 significant bits: between 2,048 and 4,096 it holds even numbers only. "
        "2,049 lies halfway, and a tie goes to the neighbour whose last bit is 0.",
    ),
}


def _batch(
    layout: Layout, source_first: int, source_count: int, start: int, origin: int, row: int
) -> StoreLaunch:
    scalars = {
        "kv_dim": layout.kv_dim,
        "source_first": source_first,
        "source_count": source_count,
        "start_position": start,
        "capacity": layout.capacity,
        "origin_logical": origin,
        "origin_physical": row,
        "head_dim": layout.head_dim,
        "head_major": int(layout.head_major),
    }
    return StoreLaunch(BATCH, scalars, layout)


def _cell_of(answer: Any) -> str:
    if not callable(answer):
        return "give the function itself, cell_of"
    for launch in (
        _batch(Layout(5, 2, 2, True), 0, 3, 4, 2, 2),
        _batch(Layout(7, 3, 4, True), 2, 7, 30, 32, 3),
        _batch(Layout(4, 1, 5, True), 1, 2, 0, 0, 0),
    ):
        told = dict(launch.scalars)
        for thread, wanted in enumerate(launch.threads()["cell"].tolist()):
            got = answer(thread, dict(told))
            if got != wanted:
                return f"thread {thread} writes cell {wanted}, cell_of says {got}; it was told {told}"
    return ""


def _number(answer: Any) -> int:
    number = np.asarray(answer)
    if number.ndim or int(number) != number:
        raise ValueError("give one whole number")
    return int(number)


def _idle(answer: Any) -> str:
    number = _number(answer)
    if number == 24:
        return ""
    if number == 0:
        return "1,000 is no multiple of 256: the last block has threads left over"
    if number == 1024:
        return "1,024 threads are started; take away the 1,000 that store"
    if number == 280:
        return "rows share blocks: the grid is source_count * kv_dim"
    return f"{number} is not it: count the threads of whole blocks, and take away those that store"


def _first_infinity(answer: Any) -> str:
    number = _number(answer)
    if number == 65520:
        return ""
    if number == 65536:
        return "65,536 is infinite in f16, but smaller numbers are rounded up to it already"
    with np.errstate(over="ignore"):
        stored = np.float16(np.float32(number))
    if np.isfinite(stored):
        return f"{number:,} is stored as {int(stored):,}"
    return f"{number:,} is stored as infinity, and so is a smaller number"


TASKS = {
    "cell of a thread": Task(
        "Write cell_of(thread, told): the cell of a head-major buffer that a thread of the batch kernel "
        "writes; told is a dict of the kernel's scalars, and the thread is below the guard.",
        _cell_of,
        "def cell_of(thread, told):\n"
        "    source_row = told['source_first'] + thread // told['kv_dim']\n"
        "    element = thread % told['kv_dim']\n"
        "    age = told['start_position'] + source_row - told['origin_logical']\n"
        "    row = (told['origin_physical'] + age) % told['capacity']\n"
        "    kv_head, dim = divmod(element, told['head_dim'])\n"
        "    return (kv_head * told['capacity'] + row) * told['head_dim'] + dim",
    ),
    "idle threads": Task(
        "5 live rows of 200 elements are launched in whole blocks of 256 threads. "
        "How many threads store nothing?",
        _idle,
        "answer = -(-1000 // 256) * 256 - 1000  # 4 blocks are 1,024 threads; 24 stop at the guard",
    ),
    "first infinity": Task(
        "What is the smallest positive whole number that the store turns into infinity?",
        _first_infinity,
        "answer = 65520  # halfway between 65,504, the largest f16, and 65,536: the tie goes up, to infinity",
    ),
}
