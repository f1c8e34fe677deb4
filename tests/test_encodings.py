from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import muser_viz as mv
from muser_viz.encodings import Q8_0, attend_rows, encode

ROWS = mv.seeded(5, 40, 64)


def test_sizes() -> None:
    sizes = [encode(ROWS, name).nbytes for name in ("f32", "f16", "q8_0")]
    assert sizes == [40 * 64 * 4, 40 * 64 * 2, 40 * 64 // 32 * 34]
    assert Q8_0.itemsize == 34


def test_f32_and_f16_are_what_numpy_says() -> None:
    assert np.array_equal(encode(ROWS, "f32").decode(), ROWS)
    assert np.array_equal(encode(ROWS, "f16").decode(), ROWS.astype(np.float16).astype(np.float32))


def test_q8_0_against_exact_arithmetic() -> None:
    stored = np.frombuffer(encode(ROWS, "q8_0").data, Q8_0)
    decoded = encode(ROWS, "q8_0").decode().reshape(-1, 32)
    for block, one, back in zip(ROWS.reshape(-1, 32), stored, decoded, strict=True):
        scale = np.float32(np.abs(block).max()) / np.float32(127)
        assert one["scale"] == np.float16(scale)
        assert np.abs(one["quants"]).max() == 127
        for element, quant, value in zip(block, one["quants"], back, strict=True):
            assert abs(Fraction(float(element)) / Fraction(float(scale)) - int(quant)) <= Fraction(
                1, 2
            ) + Fraction(1, 10**4)
            assert Fraction(float(value)) == int(quant) * Fraction(float(one["scale"]))


def test_halves_go_away_from_zero() -> None:
    block = np.zeros((1, 32), np.float32)
    block[0, :4] = 127, 2.5, -2.5, np.nextafter(np.float32(0.5), np.float32(0))
    assert encode(block, "q8_0").decode()[0, :4].tolist() == [127, 3, -3, 0]


def test_quantising_what_was_decoded_gives_the_same_bytes() -> None:
    for name in ("f32", "f16", "q8_0"):
        once = encode(ROWS, name)
        assert encode(once.decode(), name) == once


def test_zeros_and_what_is_too_small_for_a_scale() -> None:
    for value in (0.0, 1e-30, 1e-44):
        assert not encode(np.full((1, 32), value, np.float32), "q8_0").decode().any()


def test_the_reader_has_the_bits_of_attend() -> None:
    keys, values, query = mv.seeded(6, 50, 16), mv.seeded(7, 50, 16), mv.seeded(8, 4, 8)
    plane = mv.KvPlane(64, 2, 8)
    plane.append_batch(0, keys, values)
    read = attend_rows(encode(keys, "f16").decode(), encode(values, "f16").decode(), query)
    assert not mv.differing(read, mv.attend(plane, query)).any()
    assert mv.differing(attend_rows(keys, values, query), read).any()


@pytest.mark.parametrize(
    ("rows", "encoding", "message"),
    [
        (ROWS, "q4", "'q4' was asked for"),
        (ROWS.astype(float), "f16", "rows is float64"),
        (ROWS[:, :40], "q8_0", "40 wide"),
        (np.full((1, 32), np.nan, np.float32), "f32", "NaN"),
        (np.full((1, 32), 1e6, np.float32), "f16", "past f16"),
        (np.full((1, 32), 1e8, np.float32), "q8_0", "scale is past f16"),
    ],
)
def test_what_is_refused(rows: object, encoding: str, message: str) -> None:
    with pytest.raises(mv.InputError, match=message):
        encode(rows, encoding)  # type: ignore[arg-type]


def test_what_is_no_read() -> None:
    rows = mv.seeded(1, 3, 16)
    with pytest.raises(mv.InputError, match="one row or more"):
        attend_rows(rows[:0], rows[:0], mv.seeded(1, 2, 8))
    with pytest.raises(mv.InputError, match="whole heads"):
        attend_rows(rows, rows, mv.seeded(1, 2, 7))
    with pytest.raises(mv.InputError, match="3 heads"):
        attend_rows(rows, rows, mv.seeded(1, 3, 8))
