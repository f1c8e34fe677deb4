"""What lesson 09 asks (§15.9)."""

from __future__ import annotations

from typing import Any

from muser_viz.asked import Question, Task
from muser_viz.checks import whole
from muser_viz.staging import rows_lost, staged_span

QUESTIONS = {
    "lost rows": Question(
        "Tokens 0 to 2,047 fill the ring. A chunk of 512 is stored before its attention runs. "
        "Of the 2,048 rows that the query at 2,048 sees, how many are gone?",
        511,
        "the chunk overwrote tokens 0 to 511; the query at 2,048 sees tokens 1 to 2,048, "
        "so token 0 had to go anyway and 1 to 511 are missed.",
    ),
    "the gate": Question(
        "A one-row step reads the ring as it lies; another reads copies of the same rows in temporal order. "
        "At which of the gate's positions do their bits differ?",
        "2,048 and 2,049",
        "up to 2,047 the window begins in row 0, so both orders are one; "
        "from 2,048 on it begins in another row, and the sums run in another order.",
        ("none", "2,049 alone", "2,048 and 2,049", "2,047, 2,048 and 2,049", "all seven"),
    ),
}


def _staged_rows(answer: Any) -> str:
    if not callable(answer):
        return "give the function itself, staged_rows"
    for position, count in ((2048, 512), (4096, 128), (0, 512), (1800, 512), (2047, 1), (3000, 3000)):
        wanted, got = len(staged_span(position, count)), answer(position, count)
        if got != wanted:
            return f"a chunk of {count:,} at {position:,} needs {wanted:,} rows, staged_rows says {got}"
    return ""


def _largest_chunk(answer: Any) -> str:
    count = whole("answer", answer, 0)
    if count < 1:
        return "a chunk has a token at least"
    lost = int(rows_lost(1800, count).sum()) if count <= 1 << 16 else -1
    if lost:
        return f"a chunk of {count:,} ends at token {1799 + count:,}, past row 2,047: rows are overwritten"
    if count < 248:
        return f"{count} lose nothing, and neither do {count + 1}"
    return ""


def _next_equal(answer: Any) -> str:
    position = whole("answer", answer, 0)
    if position <= 2047:
        return "up to 2,047 the order is temporal anyway: look past it"
    if position == 4096:
        return "token 4,096 is written to row 0, so the front of the window is then in row 1"
    if position != 4095:
        front = max(0, position - 2047) % 2048
        return f"with token {position:,} appended last, the front of the window lies in row {front:,}" + (
            ", but an earlier position past 2,047 has that as well" if front == 0 else ""
        )
    return ""


TASKS = {
    "staged rows": Task(
        "Write staged_rows: how many rows the queries of a chunk see between them, in a window of 2,048. "
        "A prefill may begin anywhere, at 0 as well.",
        _staged_rows,
        "def staged_rows(position, count):\n"
        "    return min(position, 2047) + count  # up to 2,047 from before the chunk, and the chunk",
    ),
    "largest chunk": Task(
        "A ring of 2,048 rows holds 1,800 tokens. How long may the next chunk be, "
        "stored before its queries read, if nothing is to be lost and nothing staged?",
        _largest_chunk,
        "answer = 2048 - 1800  # 248 tokens fill the ring; the next would overwrite token 0",
    ),
    "next equal position": Task(
        "A ring filled from 0 is read as it lies, after each token. Up to 2,047 its order is temporal. "
        "Which is the next position at which it is again?",
        _next_equal,
        "answer = 4095  # the front is 4,095 - 2,047 = 2,048, in row 2,048 % 2,048 = 0",
    ),
}
