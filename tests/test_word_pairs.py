from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muser_viz.word_pairs import decimal, pair_text

F16, F32 = np.float16, np.float32


@given(st.integers(0, 2**16 - 1))
def test_five_digits_tell_every_f16_word(word: int) -> None:
    number = np.uint16(word).view(F16)
    if not np.isnan(number):
        assert F16(decimal(number)).view(np.uint16) == word


@given(st.integers(0, 2**32 - 1))
def test_nine_digits_tell_every_f32_word(word: int) -> None:
    number = np.uint32(word).view(F32)
    if not np.isnan(number):
        assert F32(decimal(number)).view(np.uint32) == word


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (
            F32(1),
            np.nextafter(F32(1), F32(2)),
            "word 1,200: own 0x3f800000 = 1, there 0x3f800001 = 1.00000012; "
            "1 bit differs, 1 ULP, 1.2e-07 apart",
        ),
        (F32(1), F32(1), "word 1,200: 0x3f800000 = 1, the same bits in own and there"),
        (
            F16(0),
            F16(-0.0),
            "word 1,200: own 0x0000 = 0, there 0x8000 = -0; 1 bit differs, 0 ULP, 0.0e+00 apart",
        ),
        (
            F16(-1),
            F16(2),
            "word 1,200: own 0xbc00 = -1, there 0x4000 = 2; 6 bits differ, 31,744 ULP, 3.0e+00 apart",
        ),
        (
            F32(np.inf),
            F32(0),
            "word 1,200: own 0x7f800000 = inf, there 0x00000000 = 0; "
            "8 bits differ, 2,139,095,040 ULP, inf apart",
        ),
        (
            F32(0),
            F32(np.nan),
            "word 1,200: own 0x00000000 = 0, there 0x7fc00000 = nan; "
            "9 bits differ, no distance: a NaN lies on no number line",
        ),
        (F32(np.nan), F32(np.nan), "word 1,200: 0x7fc00000 = nan, the same bits in own and there"),
    ],
)
def test_two_words(a: np.generic, b: np.generic, said: str) -> None:
    assert pair_text(("own", "there"), 1200, a, b) == said
