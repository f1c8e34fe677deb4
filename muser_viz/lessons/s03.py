"""What lesson 03 asks (§15.3)."""

from __future__ import annotations

from typing import Any

from muser_viz.asked import Question, Task
from muser_viz.layout import Layout

QUESTIONS = {
    "next row of a head": Question(
        "A token-major plane has 2 KV heads of 128. How many halves on from dim 0 of head 1 in row 10 "
        "does dim 0 of head 1 in row 11 lie?",
        256,
        "a row holds both heads, so the next row begins kv_dim = 2 * 128 halves later. "
        "In a head-major plane it is 128: head 1's rows follow one another.",
    ),
    "growing in place": Question(
        "A head-major plane of 6 rows, 2 KV heads of 4, is full: 48 elements. Its buffer is lengthened to "
        "12 rows, its old bytes where they were. How many of the 48 elements must move?",
        24,
        "head 0 stays at offset 0. Head 1 began at 6 * 4 = 24 and must begin at 12 * 4 = 48: "
        "all 24 of its elements move.",
    ),
}

_SIZES = ((5, 2, 3), (4, 3, 2), (7, 1, 5))


def _offset(answer: Any) -> str:
    if not callable(answer):
        return "give the function itself, offset_of"
    for sizes in _SIZES:
        for head_major in (False, True):
            layout = Layout(*sizes, head_major)
            for physical in range(layout.capacity):
                for element in range(layout.kv_dim):
                    got = answer(physical, element, *sizes, head_major)
                    wanted = layout.offset(physical, element)
                    if got != wanted:
                        return (
                            f"{layout.name}, {sizes[0]} rows of {sizes[1]} heads x {sizes[2]}: "
                            f"row {physical}, element {element} lies at {wanted}, offset_of says {got}"
                        )
    return ""


_MOVE = 7 * 1024 * 64 * 2 * 2
_WRONG_BYTES = {
    _MOVE // 2: "that is K alone, or elements where bytes are asked: an f16 has two, and V moves as well",
    _MOVE // 4: "that is the elements of K alone: an f16 has two bytes, and V moves as well",
    8 * 1024 * 64 * 4: "one head stays where it is",
    7 * 4096 * 64 * 4: "only rows that were written move: 1,024 a head",
    7 * 3072 * 64 * 4: "the 3,072 new rows are empty: the 1,024 written ones move",
    0: "only in a token-major plane does nothing move",
}


def _bytes(answer: Any) -> str:
    if answer == _MOVE:
        return ""
    if isinstance(answer, int) and answer in _WRONG_BYTES:
        return _WRONG_BYTES[answer]
    return f"{answer!r} is not it: heads that move * rows * head_dim * bytes of an element * 2 for K and V"


def _third_step(answer: Any) -> str:
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        return "give two numbers: (row, KV head)"
    if tuple(answer) == (11, 0):
        return "that is where a stride of 256 would lead; 11 * 128 = 1,408 is the offset"
    if tuple(answer) == (5, 1):
        return ""
    return f"{tuple(answer)} is not it: divide offset 1,408 by kv_dim, then the rest by head_dim"


TASKS = {
    "offset in a plane": Task(
        "Write offset_of: where an element of a row lies in the buffer, in either layout.",
        _offset,
        "def offset_of(physical, element, capacity, n_kv_heads, head_dim, head_major):\n"
        "    if not head_major:\n"
        "        return physical * n_kv_heads * head_dim + element\n"
        "    kv_head, dim = divmod(element, head_dim)\n"
        "    return (kv_head * capacity + physical) * head_dim + dim",
    ),
    "eleven steps of 128": Task(
        "A reader takes eleven steps of 128 halves from offset 0 of a token-major plane, 2 KV heads of 128. "
        "Where is it? (row, KV head)",
        _third_step,
        "answer = (5, 1)  # 11 * 128 = 1,408 = 5 * 256 + 128: row 5, element 128, which is head 1",
    ),
    "bytes that move": Task(
        "A head-major plane of 8 KV heads of 64 is full with 1,024 rows and is lengthened in place to 4,096. "
        "How many bytes of K and V move?",
        _bytes,
        "answer = 7 * 1024 * 64 * 2 * 2  # 7 heads, 1,024 rows, 64 f16 elements of 2 bytes, K and V",
    ),
}
