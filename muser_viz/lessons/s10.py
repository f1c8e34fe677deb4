"""What lesson 10 asks (§15.10)."""

from __future__ import annotations

from typing import Any

from muser_viz.asked import Question, Task
from muser_viz.checks import whole

QUESTIONS = {
    "two caches": Question(
        "The model decodes one token at a time, on our rings and on mlx-lm's, from an empty start. "
        "The window is 64. At which of these positions are all logits equal, bit for bit?",
        "all seven",
        "one at a time both put token n in row n % 64, so both sum the same rows in the same order, "
        "before the wrap and after it.",
        ("none", "up to 63", "all but 64", "all seven"),
    ),
    "the peer's row": Question(
        "A prefill of 2,560 tokens in chunks of 512, then one more token, 2,560, in a window of 2,048. "
        "In which row does mlx-lm's ring hold that token?",
        0,
        "after a chunk its rows lie in temporal order; the first single token is put over the oldest, "
        "which is then in row 0. Ours puts it in row 2,560 % 2,048 = 512.",
    ),
    "dropped rotation": Question(
        "The session is restored with every ring from row 0 on, and goes on. "
        "Which layers store K and V rows with other bits, as long as the tokens are the same?",
        "all but layer 0",
        "a row of layer 0 comes from the token alone; a row above comes from what the layers below read.",
        ("none", "the sliding layers", "all but layer 0", "all"),
    ),
}


def _level(answer: Any) -> str:
    length = whole("answer", answer, 0)
    if length <= 2048:
        return "up to 2,048 nothing is overwritten yet: look past it"
    if length % 512:
        return "it is a whole number of chunks"
    if length % 2048:
        return (
            f"after {length:,} tokens our window begins in row {length % 2048:,}, "
            "and mlx-lm's in row 0 at the first single token"
        )
    return "" if length == 4096 else f"{length:,} is one, but there is an earlier one"


def _newest(answer: Any) -> str:
    row = whole("answer", answer, 0)
    if row == 3081 % 2048:
        return f"{row:,} is our row; after a chunk mlx-lm's single tokens begin at row 0"
    if row == 10:
        return "the first of the ten lies in row 0"
    return "" if row == 9 else f"{row:,} is not it: in which row is the first single token, 3,072?"


def _trimmed(answer: Any) -> str:
    count = whole("answer", answer, 0)
    if count == 0:
        return ""
    return (
        f"with {count} taken back, token {2048 - count:,} would be the newest, and its window begins "
        f"at token {max(0, 2048 - count - 2047)}: is that one still there?"
    )


TASKS = {
    "the same order again": Task(
        "A prefill in chunks of 512, then decode, in a window of 2,048. After which length of the prefill, "
        "the first past 2,048, do our rings and mlx-lm's decode from rows in the same order?",
        _level,
        "answer = 4096  # 4,096 % 2,048 = 0: our window then begins in row 0 as well",
    ),
    "the newest row": Task(
        "A prefill of 3,072 tokens in chunks of 512, then ten tokens one at a time: 3,072 to 3,081. "
        "In which row does mlx-lm's ring hold the newest?",
        _newest,
        "answer = 9  # 3,072 went to row 0, and each next token one row on",
    ),
    "taken back": Task(
        "A ring of 2,048 rows took tokens 0 to 2,048, one at a time. "
        "How many of the newest can be taken back so that the next step still sees its whole window?",
        _trimmed,
        "answer = 0  # token 2,048 overwrote token 0, which the window of token 2,047 begins with",
    ),
}
