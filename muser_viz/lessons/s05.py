"""What lesson 05 asks (§15.5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from muser_viz.asked import Question, Task
from muser_viz.ring import Ring

QUESTIONS = {
    "first wrap": Question(
        "2,048 rows are live: tokens 0 to 2,047 in rows 0 to 2,047. Token 2,048 arrives. "
        "Which row is it written to?",
        0,
        "at capacity the row is origin_physical, the row of the oldest token; "
        "that is row 0 here, and token 0 is gone.",
    ),
    "long chunk": Question(
        "An empty ring of 8 rows is handed a chunk of 11 tokens. How many rows are written?",
        8,
        "tokens 0, 1 and 2 have left the window before the chunk ends; "
        "source rows 3 to 10 are live, and each is written once.",
    ),
}


def _row_of(answer: Any) -> str:
    if not callable(answer):
        return "give the function itself, row_of"
    for ring in (Ring(8, len=5), Ring(8, len=8, origin_logical=5, origin_physical=2), Ring(3, len=3)):
        for token in range(ring.origin_logical, ring.next_position):
            got = answer(token, ring.origin_logical, ring.origin_physical, ring.capacity)
            if got != ring.physical(token):
                return f"{ring}: token {token} lies in row {ring.physical(token)}, row_of says {got}"
    return ""


def _live_sources(answer: Any) -> str:
    ring = Ring(2048)
    ring.append_batch(0, 1800)
    reserved = ring.append_batch(1800, 3000)
    wanted = (reserved.source_first, reserved.source_count)
    answer = answer.tolist() if isinstance(answer, np.ndarray) else answer
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        return "give two numbers: (first live source row, how many are live)"
    if answer[1] != wanted[1]:
        return (
            f"after this chunk of 3,000 the ring of 2,048 does not hold {answer[1]} of its rows: count again"
        )
    if answer[0] != wanted[0]:
        return f"the last 2,048 of 3,000 rows do not begin at {answer[0]}"
    return ""


def _rows_of(answer: Any) -> str:
    if not callable(answer):
        return "give the function itself, rows_of"
    for ring, count in (
        (Ring(8, len=5), 2),
        (Ring(8, len=5), 6),
        (Ring(8), 11),
        (Ring(8, len=8, origin_logical=5, origin_physical=2), 5),
    ):
        first = ring.next_position
        reserved = ring.append_batch(first, count)
        wanted = [ring.physical(first + reserved.source_first + i) for i in range(reserved.source_count)]
        got = answer(first, count, ring.origin_logical, ring.origin_physical, ring.capacity)
        got = got.tolist() if isinstance(got, np.ndarray) else got
        if not isinstance(got, (tuple, list)):
            return f"rows_of gives {got!r}: give a list of rows, a row a token"
        if list(got) != wanted:
            gone = "; tokens before origin_logical have left the window" if len(got) > len(wanted) else ""
            return (
                f"a chunk of {count} at {first} in 8 rows, origins ({ring.origin_logical}, "
                f"{ring.origin_physical}) after it, is written to rows {wanted}; "
                f"rows_of says {list(got)}{gone}"
            )
    return ""


TASKS = {
    "row of a token": Task(
        "Write row_of: the row of a live token, from the two origins and the capacity.",
        _row_of,
        "def row_of(token, origin_logical, origin_physical, capacity):\n"
        "    return (origin_physical + token - origin_logical) % capacity",
    ),
    "live sources": Task(
        "A ring of 2,048 rows holds 1,800 tokens and takes a chunk of 3,000. "
        "Which source rows of the chunk are live afterwards? (first, how many)",
        _live_sources,
        "answer = (952, 2048)  # 1,800 + 3,000 - 2,048 = 2,752 is the front; 2,752 - 1,800 = 952",
    ),
    "rows of a chunk": Task(
        "Write rows_of, with your row_of: the rows that a chunk is written to, a row for each of its tokens "
        "that is live once it is stored, in order. The origins are those after the reservation.",
        _rows_of,
        "def rows_of(position, count, origin_logical, origin_physical, capacity):\n"
        "    live = range(max(position, origin_logical), position + count)\n"
        "    return [row_of(token, origin_logical, origin_physical, capacity) for token in live]",
        needs=("row of a token",),
    ),
}
