"""What lesson 02 asks (§15.2)."""

from __future__ import annotations

from typing import Any

from muser_viz.asked import Question, Task
from muser_viz.bill import footprint
from muser_viz.errors import InputError
from muser_viz.ring import Ring

QUESTIONS = {
    "most bytes": Question(
        "max_context is 4,096. Which planes take more bytes in all?",
        "the 39 of the sliding layers",
        "39 x 2,048 rows are 79,872, 13 x 4,096 are 53,248, and a row takes 1,024 bytes in either. "
        "The full layers' planes grow with max_context, the others stay.",
        ("the 39 of the sliding layers", "the 13 of the full layers", "both the same"),
    ),
    "naive address": Question(
        "Two stores without origins: A writes to row = position, B to row = position % capacity. "
        "Which can write outside its buffer?",
        "A only",
        "a remainder is always below the capacity. B's fault is another one: it can hit a live row.",
        ("A only", "B only", "both", "neither"),
    ),
    "modulo overwrite": Question(
        "A ring of 8 rows holds tokens 5 to 12: token 5 in row 0, token 6 in row 1, and so on. "
        "Token 13 is next, and token 5 leaves the window. "
        "A store to row position % capacity overwrites a token. Which one?",
        10,
        "13 % 8 is row 5, where token 10 lies. Token 5 stays in row 0.",
    ),
    "masked poison": Question(
        "64 rows, 40 of them live; the others hold NaN. A reader runs over all 64 rows and gives each row "
        "that is not live a weight of exactly 0. It reads 8 heads x 128 words: how many are NaN?",
        1024,
        "0 times NaN is NaN, and every word sums over all rows of V. The weight does not hide the row.",
    ),
}


def _even_classes(answer: Any) -> str:
    if isinstance(answer, float) and answer.is_integer():
        answer = int(answer)
    try:
        bill = footprint(context=answer)
    except InputError as error:
        return str(error)
    if bill.sliding_allocated == bill.full_allocated:
        return ""
    larger = "sliding" if bill.sliding_allocated > bill.full_allocated else "full"
    return (
        f"at {answer:,} the sliding planes take {bill.sliding_allocated:,} bytes and the full ones "
        f"{bill.full_allocated:,}: the {larger} ones take more"
    )


def _token_overwritten(answer: Any) -> str:
    ring = Ring(2048, len=2048, origin_logical=952)
    row = 3000 % ring.capacity
    if answer == ring.occupants()[row]:
        return ""
    if answer == row:
        return f"{row} is the row that is written; which token lies there, when row 0 holds token 952?"
    return f"token {answer!r} is not the one in row 3,000 % 2,048"


def _mass(answer: Any) -> str:
    if answer == 512 / 2048:
        return ""
    if answer == 1 - 512 / 2048:
        return "that is the share of the empty rows; the answer is what is left for the live ones"
    return f"{answer!r} is not it: equal scores are equal weights, over every row that is read"


TASKS = {
    "even classes": Task(
        "At which max_context do the 39 sliding planes and the 13 full ones take the same number of bytes?",
        _even_classes,
        "answer = 39 * 2048 // 13  # 6,144: past the window the sliding planes stay at 2,048 rows",
    ),
    "token overwritten": Task(
        "A ring of 2,048 rows holds tokens 952 to 2,999 and was restored from row 0 on. "
        "Token 3,000 is stored to row position % capacity. Which live token is overwritten?",
        _token_overwritten,
        "answer = 952 + 3000 % 2048  # row 952; row r holds token 952 + r, so 1,904",
    ),
    "mass of empty rows": Task(
        "A zero-filled plane of 2,048 rows has 512 live ones, with 1 in every element of V. "
        "All scores are 0. A reader without a mask runs to capacity. What does it read in place of 1?",
        _mass,
        "answer = 512 / 2048  # every row weighs 1/2,048, live or not: 0.25",
    ),
}
