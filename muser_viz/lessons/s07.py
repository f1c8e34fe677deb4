"""What lesson 07 asks (§15.7)."""

from __future__ import annotations

from typing import Any

from muser_viz.asked import Question, Task
from muser_viz.bill import footprint
from muser_viz.errors import InputError
from muser_viz.geometry import Geometry

QUESTIONS = {
    "token after the window": Question(
        "52 layers keep 1,024 bytes of a token each: 53,248 bytes. "
        "2,048 tokens are live. By how many bytes do the live bytes grow with one more token?",
        13_312,
        "only the 13 full planes gain a row, 13 x 1,024; "
        "the 39 rings are full and write over their oldest row.",
    ),
    "full share": Question(
        "13 of the 52 layers are full. What part of the bytes do they hold in a session of 131,072 tokens?",
        "about 95 %",
        "a ring keeps 2,048 rows and a full plane 131,072, which is 64 times as many: "
        "13 x 64 parts to 39 x 1.",
        ("25 %", "about 50 %", "about 75 %", "about 95 %"),
    ),
}


def _live_bytes(answer: Any) -> str:
    if not callable(answer):
        return "give the function itself, live_bytes"
    for tokens in (1, 2_047, 2_048, 2_049, 6_144, 131_072):
        got, wanted = answer(tokens), footprint(context=tokens).live
        if got != wanted:
            hint = "" if tokens <= 2_048 else "; a ring holds 2,048 rows at most"
            return f"{tokens:,} tokens have {wanted:,} live bytes, live_bytes says {got!r}{hint}"
    return ""


def _even(answer: Any) -> str:
    wide = Geometry(sliding_window=32_768)
    if answer == 3 * wide.sliding_window:
        return ""
    try:
        bill = footprint(wide, answer)
    except InputError:
        return f"{answer!r} is no whole number of tokens from 1 to 131,072"
    return (
        f"at {answer:,} tokens these rings hold {bill.sliding_live:,} bytes, "
        f"the full planes {bill.full_live:,}"
    )


def _slots(answer: Any) -> str:
    slot = footprint().allocated
    if answer == 16 * 1024**3 // slot:
        return ""
    if answer == 16 * 10**9 // slot:
        return (
            f"{answer} is what 16 GB hold (16 x 1,000 x 1,000 x 1,000); a GiB is 1,024 x 1,024 x 1,024 bytes"
        )
    return f"{answer!r} is not it: divide 16 x 1,024 x 1,024 x 1,024 by {slot:,}, and drop the rest"


TASKS = {
    "live bytes": Task(
        "Write live_bytes: the live bytes of a session of so many tokens, from the chapter's numbers "
        "(39 sliding layers of window 2,048, 13 full ones, 1,024 bytes for a token in a layer).",
        _live_bytes,
        "def live_bytes(tokens):\n    return 1024 * (39 * min(tokens, 2048) + 13 * tokens)",
    ),
    "even": Task(
        "With a window of 2,048 the two classes are even at 6,144 tokens. Where are they with one of 32,768?",
        _even,
        "answer = 39 * 32_768 // 13  # 98,304: three windows, for there are three rings to a full plane",
    ),
    "slots": Task(
        "16 GiB are free for planes. How many slots of 131,072 tokens can be allocated?",
        _slots,
        "import muser_viz as mv\n\nanswer = 16 * 1024**3 // mv.footprint().allocated  # 9; of 16 GB it is 8",
    ),
}
