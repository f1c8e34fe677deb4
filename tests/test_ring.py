from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import cases
from hypothesis import given
from hypothesis import strategies as st
from walk import walk_ring

import muser_viz as mv
from muser_viz.ring import Ring, spans

RING_CASES = cases("ring.json")


@pytest.mark.parametrize("case", RING_CASES, ids=lambda case: str(case["id"]))
def test_case(case: dict[str, Any]) -> None:
    walk_ring(Ring(case["capacity"]), case)


def test_the_walk_at_the_wrap() -> None:
    ring = Ring(2048)
    seen = {}
    for position in range(4097):
        row = ring.append(position)
        seen[position] = (row, ring.len, ring.origin_logical, ring.origin_physical)
    assert {n: seen[n] for n in (0, 2047, 2048, 2049, 4095, 4096)} == {
        0: (0, 1, 0, 0),
        2047: (2047, 2048, 0, 0),
        2048: (0, 2048, 1, 1),
        2049: (1, 2048, 2, 2),
        4095: (2047, 2048, 2048, 0),
        4096: (0, 2048, 2049, 1),
    }


@given(
    capacity=st.integers(1, 12),
    counts=st.lists(st.integers(0, 30), max_size=8),
    rotation=st.integers(0, 11),
)
def test_a_chunk_ends_where_single_appends_end(capacity: int, counts: list[int], rotation: int) -> None:
    state = {"len": capacity, "origin_logical": 100, "origin_physical": rotation % capacity}
    whole, single = Ring(capacity, **state), Ring(capacity, **state)
    for count in counts:
        position = whole.next_position
        reserved = whole.append_batch(position, count)
        rows = [single.append(position + i) for i in range(count)]
        live = [whole.physical(position + reserved.source_first + i) for i in range(reserved.source_count)]
        assert live == rows[reserved.source_first :]
        assert whole == single


@given(capacity=st.integers(1, 9), count=st.integers(0, 40))
def test_from_empty_the_origins_agree_with_a_modulus(capacity: int, count: int) -> None:
    ring = Ring(capacity)
    for position in range(count):
        assert ring.append(position) == position % capacity
        assert ring.origin_physical == ring.origin_logical % capacity


@pytest.mark.parametrize("position", [4, 6, 0, 1000])
def test_a_refusal_changes_nothing(position: int) -> None:
    ring = Ring(8)
    ring.append_batch(0, 5)
    before = ring.copy()
    for ask in (lambda: ring.append(position, 7), lambda: ring.append_batch(position, 0, 7)):
        with pytest.raises(
            mv.CacheDiscontinuity, match=f"layer 7: position {position} .* 5 is next"
        ) as caught:
            ask()
        assert (caught.value.layer, caught.value.expected, caught.value.got) == (7, 5, position)
        assert ring == before


@pytest.mark.parametrize("position", [-1, 1.0, "0", True, None, 1 << 32])
def test_what_is_no_position_is_refused(position: Any) -> None:
    ring = Ring(8)
    with pytest.raises(mv.InputError):
        ring.append(position)
    assert ring == Ring(8)


def test_numpy_positions_are_taken() -> None:
    ring = Ring(4)
    assert ring.append(np.int64(0)) == 0
    assert type(ring.append(np.uint32(1))) is int


def test_the_last_position_of_32_bits() -> None:
    ring = Ring(4, len=4, origin_logical=(1 << 32) - 5)
    ring.append((1 << 32) - 1)
    with pytest.raises(mv.InputError, match="4294967295"):
        ring.append(1 << 32)


def test_a_token_that_is_not_live() -> None:
    ring = Ring(4)
    with pytest.raises(mv.NotLive, match="empty"):
        ring.physical(0)
    ring.append_batch(0, 6)
    for position in (1, 6):
        with pytest.raises(mv.NotLive, match="tokens 2 to 5 are live"):
            ring.physical(position)


@pytest.mark.parametrize(
    "state",
    [{"len": 5}, {"origin_logical": 1, "len": 3}, {"origin_physical": 4}, {"origin_logical": -1, "len": 4}],
)
def test_unsound_states_are_refused(state: dict[str, int]) -> None:
    with pytest.raises(mv.InputError):
        Ring(4, **state)


@given(capacity=st.integers(1, 20), data=st.data())
def test_spans_are_the_rows_in_order(capacity: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, capacity - 1))
    count = data.draw(st.integers(0, capacity))
    rows = [row for part in spans(first, count, capacity) for row in range(part.start, part.stop)]
    assert rows == [(first + i) % capacity for i in range(count)]
    assert len(spans(first, count, capacity)) <= 2
    assert all(part.start < part.stop for part in spans(first, count, capacity))


def test_rings_compare_by_state() -> None:
    assert Ring(4) != Ring(5)
    assert Ring(4) != "ring"
    assert repr(Ring(4)) == "Ring(capacity=4, len=0, origin_logical=0, origin_physical=0)"
