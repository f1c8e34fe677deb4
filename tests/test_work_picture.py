from __future__ import annotations

import pytest

import muser_viz as mv

MODEL = mv.StandInModel(mv.Geometry(2, 4, 1, 4, n_query_heads=2, full_every=1))


def test_the_text_says_what_is_drawn() -> None:
    kept, recomputed = (mv.generate(MODEL, [0], 8, store=store) for store in (True, False))
    picture = mv.draw_work(kept, recomputed)
    assert picture.png.startswith(b"\x89PNG")
    assert picture.text.splitlines() == [
        "work for each of 8 tokens, all layers",
        "K/V rows projected for token 1, 2, 4, 8",
        "  with a store: 2, 2, 2, 2; 16 for all tokens",
        "  without: 2, 4, 8, 16; 72 for all tokens",
        "keys scored for token 1, 2, 4, 8",
        "  with a store: 2, 4, 8, 16; 72 for all tokens",
        "  without: 2, 5, 14, 44; 156 for all tokens",
    ]


def test_a_single_token_is_drawn() -> None:
    made = mv.generate(MODEL, [0], 1, store=True)
    assert "token 1\n" in mv.draw_work(made, made).text


def test_runs_of_two_lengths() -> None:
    runs = [mv.generate(MODEL, [0], count, store=True) for count in (2, 3)]
    with pytest.raises(mv.InputError, match="2 and 3 tokens"):
        mv.draw_work(*runs)
