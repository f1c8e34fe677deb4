"""The picture of two sessions that part: what it draws, and text that holds on every machine."""

from __future__ import annotations

import numpy as np

from muser_viz.model.runs import Spread
from muser_viz.model.spread_picture import draw_spread, sentences


def spread(rows: np.ndarray, tokens: list[list[int]] | None = None) -> Spread:
    count = len(rows)
    differs = rows.any(axis=1).astype(np.int64)
    return Spread(
        np.array(tokens or [[1] * count] * 2, np.int64),
        7 * differs,
        differs.astype(np.float32) * np.float32(1e-6),
        rows,
        256,
        128,
    )


def grown() -> np.ndarray:
    rows = np.zeros((6, 4), np.int64)
    rows[0, 2] = 1
    rows[3:, 1:] = 9
    return rows


def test_its_text_is_the_properties() -> None:
    picture = draw_spread(spread(grown()))
    assert picture.png[:4] == b"\x89PNG"
    assert picture.text.splitlines() == [
        "Two sessions of one model, 6 tokens, 4 layers",
        "all 6 tokens are the same",
        "logits of the first token differ: yes",
        "layers whose rows are equal as long as the tokens agree: 0",
        "more words of rows differ in the later half than in the earlier: yes",
    ]


def test_nothing_that_differs() -> None:
    picture = draw_spread(spread(np.zeros((4, 3), np.int64)))
    assert picture.text.splitlines()[1:] == [
        "all 4 tokens are the same",
        "no logit differs",
        "no row differs",
    ]


def test_rows_after_the_first_other_token_do_not_count() -> None:
    rows = grown()
    rows[5, 0] = 3
    said = sentences(spread(rows, [[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 2, 1]]))
    assert said[0] == "token 5 is the first that differs"
    assert "agree: 0" in said[2]
