from __future__ import annotations

import dataclasses
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muser_viz as mv
from muser_viz.layout import Layout

unequal = st.lists(st.integers(1, 9), min_size=3, max_size=3, unique=True)
both = pytest.mark.parametrize("head_major", [False, True], ids=["token-major", "head-major"])


@given(sizes=unequal, head_major=st.booleans())
def test_every_element_has_its_own_offset(sizes: list[int], head_major: bool) -> None:
    layout = Layout(*sizes, head_major)
    places = [layout.offset(*at) for at in product(range(layout.capacity), range(layout.kv_dim))]
    assert sorted(places) == list(range(layout.size))


@given(sizes=unequal, head_major=st.booleans(), data=st.data())
def test_offsets_are_those_of_numpy(sizes: list[int], head_major: bool, data: st.DataObject) -> None:
    layout = Layout(*sizes, head_major)
    physical = data.draw(st.integers(0, layout.capacity - 1))
    element = data.draw(st.integers(0, layout.kv_dim - 1))
    head, dim = divmod(element, layout.head_dim)
    at = (head, physical, dim) if head_major else (physical, element)
    assert layout.offset(physical, element) == np.ravel_multi_index(at, layout.shape)


@given(sizes=unequal, head_major=st.booleans(), data=st.data())
def test_rows_are_picked_whole(sizes: list[int], head_major: bool, data: st.DataObject) -> None:
    layout = Layout(*sizes, head_major)
    rows = sorted(data.draw(st.lists(st.integers(0, layout.capacity), min_size=2, max_size=2)))
    buffer = np.arange(layout.size).reshape(layout.shape)
    picked = buffer[layout.index(slice(*rows))]
    wanted = {layout.offset(row, element) for row in range(*rows) for element in range(layout.kv_dim)}
    assert set(picked.ravel().tolist()) == wanted


def test_the_formulas_of_the_chapter() -> None:
    assert Layout(2048).offset(2047, 255) == 2047 * 256 + 255
    assert Layout(131_072, head_major=True).offset(5, 128 + 7) == (1 * 131_072 + 5) * 128 + 7


@both
def test_shapes(head_major: bool) -> None:
    layout = Layout(5, 3, 7, head_major)
    assert layout.shape == ((3, 5, 7) if head_major else (5, 21))
    assert layout.name == ("head-major" if head_major else "token-major")
    assert (layout.kv_dim, layout.size) == (21, 105)


@both
@pytest.mark.parametrize("physical", [-1, 5, 1.0, True])
def test_what_is_no_row(physical: Any, head_major: bool) -> None:
    with pytest.raises(mv.InputError, match=r"^physical is .*from 0 to 4$"):
        Layout(5, 3, 7, head_major).offset(physical, 0)


@both
@pytest.mark.parametrize("element", [-1, 21, 1.0, True])
def test_what_is_no_element(element: Any, head_major: bool) -> None:
    with pytest.raises(mv.InputError, match=r"^element is .*from 0 to 20$"):
        Layout(5, 3, 7, head_major).offset(0, element)


@pytest.mark.parametrize("name", ["capacity", "n_kv_heads", "head_dim"])
@pytest.mark.parametrize("value", [0, -1, 2.0, True])
def test_sizes_are_whole_and_at_least_one(name: str, value: Any) -> None:
    with pytest.raises(mv.InputError, match=f"^{name} is .*from 1( to 2147483648)?$"):
        Layout(**{"capacity": 4, name: value})


@both
def test_kernels_index_fewer_than_32_bits_of_elements(head_major: bool) -> None:
    assert Layout((1 << 24) - 1, head_major=head_major).size == (1 << 32) - 256
    with pytest.raises(mv.InputError, match=r"16777216 rows of 256 .* fewer than 2\*\*32"):
        Layout(1 << 24, head_major=head_major)


def test_numpy_sizes_become_int() -> None:
    layout = Layout(np.int64(5), np.uint8(3), np.int32(7), np.True_)  # type: ignore[arg-type]
    assert layout == Layout(5, 3, 7, True)
    assert {type(size) for size in (layout.capacity, layout.n_kv_heads, layout.head_dim)} == {int}
    assert layout.head_major is True


def test_a_layout_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Layout(5).capacity = 6  # type: ignore[misc]
