from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import muser_viz as mv
from muser_viz.checks import POSITION_LIMIT, floats, span, whole

NUMPY_INTS = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64]


@pytest.mark.parametrize("kind", [int, *NUMPY_INTS])
def test_whole_numbers_come_back_as_int(kind: type) -> None:
    number = whole("count", kind(7), 0, 7)
    assert number == 7
    assert type(number) is int


def test_a_scalar_array_of_integers_is_a_whole_number() -> None:
    assert whole("count", np.array(7), 0) == 7


@pytest.mark.parametrize(
    "value",
    [True, False, np.True_, np.False_, 1.0, np.float32(1), np.float64(1), "1", b"1", None, 1j, [1], (1,), {}],
    ids=repr,
)
def test_what_is_no_whole_number_is_named(value: Any) -> None:
    with pytest.raises(mv.InputError) as caught:
        whole("count", value, 0, 9)
    assert str(caught.value) == f"count is {value!r}; give a whole number from 0 to 9"


@pytest.mark.parametrize("value", [np.array([1]), np.array([1, 2]), np.array(1.0), np.array(True)], ids=repr)
def test_arrays_that_are_no_whole_number(value: Any) -> None:
    with pytest.raises(mv.InputError, match="give a whole number from 0"):
        whole("count", value, 0)


@pytest.mark.parametrize("value", [-1, np.int64(-1), 10, np.uint64(10), 1 << 64])
def test_out_of_bounds_says_the_bounds(value: Any) -> None:
    with pytest.raises(mv.InputError) as caught:
        whole("rotation", value, 0, 9)
    assert str(caught.value) == f"rotation is {int(value)}; give a whole number from 0 to 9"


@pytest.mark.parametrize("value", [0, -5, np.int32(0)])
def test_without_an_upper_bound_the_message_has_none(value: Any) -> None:
    with pytest.raises(mv.InputError, match=f"^capacity is {value}; give a whole number from 1$"):
        whole("capacity", value, 1)
    assert whole("capacity", 1 << 80, 1) == 1 << 80


def test_the_bounds_themselves_are_taken() -> None:
    assert [whole("step", step, -1, 1) for step in (-1, 0, 1)] == [-1, 0, 1]


def test_an_input_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="whole number"):
        whole("count", 1.5, 0)


@pytest.mark.parametrize(
    ("position", "count"),
    [(0, 0), (1, POSITION_LIMIT - 1), (POSITION_LIMIT - 1, 0), (POSITION_LIMIT - 1, 1), (5, np.uint32(7))],
)
def test_spans_up_to_32_bits(position: int, count: int) -> None:
    assert span(position, count) == (position, count)
    assert {type(number) for number in span(position, count)} == {int}


def test_a_span_is_of_one_token_unless_said() -> None:
    assert span(np.int64(12)) == (12, 1)


@pytest.mark.parametrize("position", [-1, POSITION_LIMIT, np.uint64(POSITION_LIMIT), True, 1.0, "0", None])
def test_what_is_no_position(position: Any) -> None:
    with pytest.raises(mv.InputError, match=r"^position is .*; give a whole number from 0 to 4294967295$"):
        span(position)


@pytest.mark.parametrize("count", [-1, POSITION_LIMIT, True, 1.0, "1", None])
def test_what_is_no_count(count: Any) -> None:
    with pytest.raises(mv.InputError, match=r"^count is .*; give a whole number from 0 to 4294967295$"):
        span(0, count)


@pytest.mark.parametrize(("position", "count"), [(2, POSITION_LIMIT - 1), (POSITION_LIMIT - 1, 2)])
def test_a_span_past_32_bits(position: int, count: int) -> None:
    with pytest.raises(mv.InputError, match=rf"^{count} tokens from position {position} end past 2\*\*32"):
        span(position, count)


def test_floats_are_kept() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    kept = floats("keys", rows, (None, 3))
    assert kept is rows


def test_floats_come_back_in_c_order() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    for view in (np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2], rows[::-1][::-1]):
        ordered = floats("keys", view, (None, 3))
        assert ordered.flags.c_contiguous
        assert ordered.tobytes() == rows.tobytes()


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.uint8, np.bool_])
def test_another_dtype_is_told_how_to_convert(dtype: type) -> None:
    with pytest.raises(mv.InputError) as caught:
        floats("key", np.zeros(4, dtype), (4,))
    wanted = f"key is {np.dtype(dtype)}; the store kernels take float32: key.astype('float32')"
    assert str(caught.value) == wanted


def test_a_list_of_python_floats_is_float64() -> None:
    with pytest.raises(mv.InputError, match=r"^value is float64; "):
        floats("value", [1.0, 2.0], (2,))


@pytest.mark.parametrize(
    ("shape", "wanted", "said"),
    [
        ((3,), (4,), "(4,)"),
        ((1, 4), (4,), "(4,)"),
        ((), (4,), "(4,)"),
        ((4,), (None, 4), "(n, 4)"),
        ((2, 3), (None, 4), "(n, 4)"),
        ((4, 2), (None, 4), "(n, 4)"),
        ((2, 5, 4), (3, None, 4), "(3, n, 4)"),
    ],
)
def test_another_shape_is_told_the_right_one(
    shape: tuple[int, ...], wanted: tuple[int | None, ...], said: str
) -> None:
    with pytest.raises(mv.InputError) as caught:
        floats("key", np.zeros(shape, np.float32), wanted)
    assert str(caught.value) == f"key has shape {shape}; give {said}"


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_any_number_of_rows_where_none_is_named(rows: int) -> None:
    assert floats("keys", np.zeros((rows, 4), np.float32), (None, 4)).shape == (rows, 4)
