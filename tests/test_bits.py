from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muser_viz as mv
from muser_viz.bits import words

HALF, SINGLE = np.float16, np.float32
both = pytest.mark.parametrize("dtype", [HALF, SINGLE])
COMPARERS = [mv.differing, mv.ulp_distance]
TINY = {HALF: 2.0**-24, SINGLE: 2.0**-149}
RAW = {HALF: np.uint16, SINGLE: np.uint32}


def drawn(dtype: type) -> st.SearchStrategy[float]:
    return st.floats(width=16 if dtype is HALF else 32, allow_nan=False)


@both
def test_zeros_of_two_signs_differ_and_are_0_ulp_apart(dtype: type) -> None:
    minus, plus = np.array([-0.0, 0.0], dtype), np.array([0.0, 0.0], dtype)
    assert mv.differing(minus, plus).tolist() == [True, False]
    assert mv.ulp_distance(minus, plus).tolist() == [0, 0]


@both
@given(data=st.data())
def test_neighbours_are_1_ulp_apart(dtype: type, data: st.DataObject) -> None:
    value = np.array(data.draw(drawn(dtype)), dtype)
    with np.errstate(all="ignore"):
        for side in (np.inf, -np.inf):
            near = np.nextafter(value, dtype(side))
            assert mv.ulp_distance(value, near) == (0 if value == side else 1)
            assert mv.differing(value, near) == (value != side)


@both
@given(data=st.data())
def test_distances_add_up_along_the_line(dtype: type, data: st.DataObject) -> None:
    low, middle, high = sorted(data.draw(st.lists(drawn(dtype), min_size=3, max_size=3)))
    a, b, c = (np.array(number, dtype) for number in (low, middle, high))
    assert mv.ulp_distance(a, c) == mv.ulp_distance(a, b) + mv.ulp_distance(b, c)
    assert mv.ulp_distance(a, c) == mv.ulp_distance(c, a)


@pytest.mark.parametrize(
    ("dtype", "a", "b", "apart"),
    [
        (HALF, 1.0, 2.0, 1 << 10),
        (SINGLE, 1.0, 2.0, 1 << 23),
        (HALF, -TINY[HALF], TINY[HALF], 2),
        (SINGLE, -TINY[SINGLE], TINY[SINGLE], 2),
        (HALF, -1.0, 1.0, 2 * 0x3C00),
        (SINGLE, -1.0, 1.0, 2 * 0x3F800000),
        (HALF, -np.inf, np.inf, 2 * 0x7C00),
        (SINGLE, -np.inf, np.inf, 2 * 0x7F800000),
        (HALF, 65504.0, np.inf, 1),
    ],
)
def test_known_distances(dtype: type, a: float, b: float, apart: int) -> None:
    distance = mv.ulp_distance(np.array([a], dtype), np.array([b], dtype))
    assert distance.tolist() == [apart]
    assert distance.dtype == np.int64


@both
def test_a_nan_is_on_no_number_line(dtype: type) -> None:
    some, nan = np.ones(3, dtype), np.array([1, np.nan, 1], dtype)
    for pair in ((some, nan), (nan, some), (nan, nan)):
        with pytest.raises(mv.InputError, match="NaN"):
            mv.ulp_distance(*pair)
    assert mv.differing(some, nan).tolist() == [False, True, False]
    assert not mv.differing(nan, nan.copy()).any()


@pytest.mark.parametrize("compare", COMPARERS)
@pytest.mark.parametrize(("a", "b"), [((3,), (4,)), ((3,), (1, 3)), ((), (1,)), ((2, 3), (3, 2))])
def test_unequal_shapes_are_refused(compare: Any, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    with pytest.raises(mv.InputError, match="one dtype and shape"):
        compare(np.zeros(a, SINGLE), np.zeros(b, SINGLE))


@pytest.mark.parametrize("compare", COMPARERS)
def test_unequal_dtypes_are_refused(compare: Any) -> None:
    with pytest.raises(mv.InputError, match=r"float16 .* and float32 "):
        compare(np.zeros(3, HALF), np.zeros(3, SINGLE))


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint16, np.bool_, np.complex64])
def test_other_dtypes_have_no_words(dtype: type) -> None:
    array = np.zeros(3, dtype)
    for ask in (mv.hexbits, words, lambda a: mv.differing(a, a), lambda a: mv.ulp_distance(a, a)):
        with pytest.raises(mv.InputError, match=f"{np.dtype(dtype)} was given"):
            ask(array)


@pytest.mark.parametrize(
    ("dtype", "values", "texts"),
    [
        (HALF, [1.0, -0.0, 0.0, 65504.0, TINY[HALF]], ["0x3c00", "0x8000", "0x0000", "0x7bff", "0x0001"]),
        (SINGLE, [1.0, -0.0, 0.1], ["0x3f800000", "0x80000000", "0x3dcccccd"]),
    ],
)
def test_hexbits(dtype: type, values: list[float], texts: list[str]) -> None:
    shown = mv.hexbits(np.array(values, dtype))
    assert shown.tolist() == texts
    assert shown.dtype.kind == "U"


@both
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (3, 0, 2)])
def test_shapes_are_kept(dtype: type, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, dtype)
    assert mv.hexbits(array).shape == shape
    assert words(array).shape == shape
    for compare in COMPARERS:
        compared = compare(array, array)
        assert isinstance(compared, np.ndarray)
        assert compared.shape == shape
        assert not compared.any()


@both
def test_one_number_is_an_array_without_dimensions(dtype: type) -> None:
    assert mv.hexbits(dtype(1)).item() == ("0x3c00" if dtype is HALF else "0x3f800000")
    assert mv.differing(dtype(1), dtype(2)).item() is True
    assert mv.ulp_distance(dtype(1), np.nextafter(dtype(1), dtype(2))).item() == 1


@both
def test_views_are_read_in_their_own_order(dtype: type) -> None:
    array = np.arange(6, dtype=dtype).reshape(2, 3)
    assert mv.hexbits(array.T).tolist() == mv.hexbits(array).T.tolist()
    assert mv.hexbits(array[:, ::-1]).tolist() == mv.hexbits(array)[:, ::-1].tolist()
    assert not mv.differing(array.T, array.T.copy()).any()


@both
@given(data=st.data())
def test_words_are_the_bytes(dtype: type, data: st.DataObject) -> None:
    raw = np.array(data.draw(st.lists(st.integers(0, np.iinfo(RAW[dtype]).max), max_size=5)), RAW[dtype])
    back = words(raw.view(dtype))
    assert back.dtype == raw.dtype
    assert back.tolist() == raw.tolist()
    assert [int(text, 16) for text in mv.hexbits(raw.view(dtype)).tolist()] == raw.tolist()


@both
def test_any_bit_makes_a_difference(dtype: type) -> None:
    width = 8 * np.dtype(dtype).itemsize
    raw = np.zeros(width, RAW[dtype])
    flipped = np.array([1 << bit for bit in range(width)], RAW[dtype])
    assert mv.differing(raw.view(dtype), flipped.view(dtype)).all()
