"""What lesson 01 asks (§15.1)."""

from __future__ import annotations

from typing import Any

from muser_viz.asked import Question, Task
from muser_viz.generation import rows_needed
from muser_viz.geometry import Geometry

QUESTIONS = {
    "rows without a store": Question(
        "32 tokens are generated from a prompt of one token. With a store, a layer projects K and V of 32 "
        "tokens in all. Without one, it starts over at each step: of how many tokens in all?",
        528,
        "the step for token t projects t rows, so 1 + 2 + ... + 32 = 32 * 33 / 2.",
    ),
    "an early token": Question(
        "24 tokens run through two layers. Then token 5 is another one, and all run again. "
        "In which rows does K or V have other bits?",
        "row 5 in layer 0, rows 5 to 23 in layer 1",
        "layer 0 projects the token's own state. Layer 1 projects what layer 0's attention made of it, "
        "and every token from 5 on has read token 5 there.",
        (
            "row 5 in both layers",
            "rows 5 to 23 in both layers",
            "row 5 in layer 0, rows 5 to 23 in layer 1",
            "all rows of layer 1",
        ),
    ),
    "reach of a token": Question(
        "Four sliding layers, each with a window of 8 tokens. Token 0 is changed. "
        "Of how many tokens can the last layer's output change, token 0 itself among them?",
        29,
        "in each layer a token is read by itself and the 7 after it, so each layer carries the change "
        "7 tokens further: 4 * 7 + 1.",
    ),
}


def _projected(answer: Any) -> str:
    told = {
        10**10: "that is n * n, as if each step were as long as the last; the prefix grows by one a step",
        99_999 * 50_000: "those are the rows projected again; each token's first projection counts too",
        100_000: "with a store that is the whole bill; without, only the last step costs as much",
        99_999: "the last step alone projects that many again; add up all steps",
    }
    if answer in told:
        return told[answer]
    return "" if answer == 50_000 * 100_001 else f"{answer!r} is not it: add 1 + 2 + ... up to the last step"


def _stays(answer: Any) -> str:
    if not callable(answer):
        return "give the function itself, stays"
    for layer in range(3):
        for changed in range(6):
            for row in range(6):
                wanted = row != changed if layer == 0 else row < changed
                if bool(answer(layer, changed, row)) != wanted:
                    return (
                        f"layer {layer}, token {changed} changed: row {row} "
                        f"{'keeps its bits' if wanted else 'gets other bits'}, stays says otherwise"
                    )
    return ""


def _reach(answer: Any) -> str:
    if not callable(answer):
        return "give the function itself, reach"
    for layers, window, tokens in (
        (1, 8, 40),
        (2, 8, 40),
        (4, 8, 40),
        (4, 8, 10),
        (3, 1, 5),
        (9, 2048, 20_000),
    ):
        stack = Geometry(n_layers=layers, sliding_window=window, full_every=layers + 1)
        wanted = rows_needed(stack, tokens)[0]
        got = answer(layers, window, tokens)
        if got != wanted:
            return (
                f"{layers} layers, window {window:,}, {tokens:,} tokens: the last token's output depends on "
                f"{wanted:,} tokens, reach says {got}"
            )
    return ""


TASKS = {
    "rows projected": Task(
        "One layer, a prompt of one token, 100,000 tokens generated without a store. "
        "Of how many tokens in all does it project K and V?",
        _projected,
        "answer = 100_000 * 100_001 // 2  # 1 + 2 + ... + 100,000",
    ),
    "rows that stay": Task(
        "Full layers, no window. Write stays: whether a layer's K row keeps its bits when another token "
        "takes the place of token `changed`. (Say no wherever bits can change.)",
        _stays,
        "def stays(layer, changed, row):\n    return row != changed if layer == 0 else row < changed",
    ),
    "reach": Task(
        "Write reach: on how many of a session's tokens, itself among them, does the last token's output "
        "depend in a stack of sliding layers?",
        _reach,
        "def reach(layers, window, tokens):\n    return min(tokens, layers * (window - 1) + 1)",
    ),
}
