from __future__ import annotations

import numpy as np
import pytest

import muser_viz as mv
from muser_viz import sweeps
from muser_viz.sweeps import Sweep


def swept(rotations: int = 70, width: int = 6, own: int = 5) -> np.ndarray:
    values = mv.seeded(3, rotations, width)
    values[:, 0] = values[own, 0]
    values[own, 3] = 0.0
    values[7] = values[own]
    values[9, 3] = -0.0
    return values


def test_each_rotation_against_the_own_one() -> None:
    given = swept()
    sweep = Sweep.of(given.reshape(70, 2, 3), 5)
    base = given[5].astype(np.float64)
    for rotation in range(70):
        row = given[rotation]
        assert sweep.counts[rotation] == mv.differing(row, given[5]).sum()
        assert sweep.sizes[rotation] == np.abs(row - base).max()
        assert sweep.ulps[rotation] == mv.ulp_distance(row, given[5]).max()
        at = sweep.index[rotation]
        assert abs(row[at] - base[at]) == sweep.sizes[rotation]
        assert (sweep.own_words[rotation], sweep.other_words[rotation]) == (given[5, at], row[at])
    assert (len(sweep), sweep.width, sweep.own) == (70, 6, 5)
    assert sweep.furthest == int(np.argmax(sweep.sizes))
    assert sweep.counts[5] == 0


def test_in_parts_as_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Sweep.of(swept(), 5)
    monkeypatch.setattr(sweeps, "_AT_ONCE", 20)
    parts = Sweep.of(swept(), 5)
    for name in ("counts", "sizes", "ulps", "index", "own_words", "other_words"):
        assert np.array_equal(getattr(parts, name), getattr(whole, name)), name


def test_a_sign_of_zero_alone_is_the_word_shown() -> None:
    given = np.zeros((2, 4), np.float32)
    given[1, 2] = -0.0
    sweep = Sweep.of(given, 0)
    assert (sweep.counts[1], sweep.sizes[1], sweep.index[1]) == (1, 0, 2)
    assert sweep.said(1) == (
        "picked rotation 1: 1 word differs, at most 0.0e+00, 0 ULP\n"
        "its largest difference, word 2: own 0x00000000 = 0, rotation 1 0x80000000 = -0; "
        "1 bit differs, 0 ULP, 0.0e+00 apart"
    )
    assert sweep.furthest == 0


def test_a_reader_s_period_is_found_and_only_its_own() -> None:
    given = np.zeros((128, 40), np.float32)
    for rotation in range(128):
        given[rotation, : 1 + rotation % 32] = 1
    given[50] = 0
    sweep = Sweep.of(given, 50)
    assert sweep.explained("words", 32) == pytest.approx((1.0, 31 / 126))
    assert sweep.explained("words", 64) == pytest.approx((1.0, 63 / 126))
    shares = sweep.explained("words", 8)
    assert shares is not None
    assert shares[0] < 0.1
    assert sweep.folded("words", 32) == (
        "folded by 32: columns explain 100.0 % of the spread of the words that differ; "
        "after a shuffle it would be 24.6 %"
    )
    assert sweep.folded("size", 32) == "folded by 32: all other rotations alike in their largest difference"


def test_shuffled_rotations_explain_what_is_said_of_a_shuffle() -> None:
    given = np.zeros((2048, 64), np.float32)
    counts = np.random.default_rng(1).integers(1, 64, 2048)
    for rotation, count in enumerate(counts):
        given[rotation, :count] = 1
    given[0] = 0
    shares = Sweep.of(given, 0).explained("words", 32)
    assert shares is not None
    assert shares[0] == pytest.approx(shares[1], rel=0.6)


def test_the_colours_span_all_but_the_ends() -> None:
    given = np.zeros((102, 200), np.float32)
    for rotation in range(102):
        given[rotation, :rotation] = 1
    assert Sweep.of(given, 0).spanned("words") == (3, 99)


@pytest.mark.parametrize(
    ("rotations", "folds"), [(2, ()), (16, (8,)), (70, (8, 16, 32)), (2048, sweeps.FOLDS)]
)
def test_what_can_be_folded(rotations: int, folds: tuple[int, ...]) -> None:
    assert Sweep.of(np.zeros((rotations, 1), np.float32), 0).folds == folds


def test_lines() -> None:
    sweep = Sweep.of(swept(), 5)
    assert sweep.said(5) == "picked rotation 5: the own one"
    assert sweep.said(7) == "picked rotation 7: no word differs"
    assert sweep.said(8).startswith(f"picked rotation 8: 5 words differ, at most {sweep.sizes[8]:.1e}, ")
    assert sweep.summary().splitlines()[3].endswith(": 2")
    with pytest.raises(mv.InputError, match="give one of words, size, ulp"):
        sweep.values("bits")
