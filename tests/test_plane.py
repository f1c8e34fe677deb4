from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from walk import Expected, check_state

import muser_viz as mv
from muser_viz import devices

RING_CASES = cases("ring.json")
HEADS, DIM = 2, 4
WIDTH = HEADS * DIM
RUNS_HERE = [status.name for status in devices.backends() if status.available]


def rows(first: int, count: int, width: int = WIDTH) -> tuple[np.ndarray, np.ndarray]:
    """K and V of tokens: another value for each token, element and buffer, not exact in f16."""
    token = np.arange(first, first + count, dtype=np.float32)[:, None]
    element = np.arange(width, dtype=np.float32) / 7
    return (token + element).astype(np.float32), (-token - element / 3).astype(np.float32)


def everything(plane: mv.KvPlane) -> tuple[Any, ...]:
    """All fields and all bytes."""
    return (plane.ring.state, plane.raw_key().tobytes(), plane.raw_value().tobytes())


@pytest.mark.parametrize("head_major", [False, True], ids=["token-major", "head-major"])
@pytest.mark.parametrize("case", RING_CASES, ids=lambda case: str(case["id"]))
def test_case_byte_for_byte(case: dict[str, Any], head_major: bool, backend: str) -> None:
    plane = mv.KvPlane(case["capacity"], HEADS, DIM, head_major, backend)
    wanted = Expected(case["capacity"], HEADS, DIM)
    for step in case["steps"]:
        count = step.get("count", 1)
        keys, values = rows(step["position"], count)
        before = everything(plane)
        if "error" in step:
            with pytest.raises(mv.CacheDiscontinuity):
                plane.append_batch(step["position"], keys, values)
            assert everything(plane) == before
        elif step["op"] == "append":
            assert plane.append(step["position"], keys[0], values[0]) == step["row"]
            wanted.put(step["row"], keys, values)
        else:
            plane.append_batch(step["position"], keys, values)
            if step["source_count"]:
                first = step["position"] + step["source_first"]
                wanted.put(
                    plane.physical(first), keys[step["source_first"] :], values[step["source_first"] :]
                )
        check_state(plane, step)
        wanted.check(plane)


@pytest.mark.parametrize("head_major", [False, True], ids=["token-major", "head-major"])
@pytest.mark.parametrize("chunk", [False, True], ids=["append", "append_batch"])
def test_rounding_in_the_store_kernels(head_major: bool, chunk: bool, backend: str) -> None:
    table = cases("f16.json")["values"]
    given_values = np.array(
        [float.fromhex(text) if "0x" in text else float(text) for text, _ in table], np.float32
    )
    wanted = np.array([int(word, 16) for _, word in table], np.uint16)
    plane = mv.KvPlane(3, 2, len(table) // 2, head_major, backend)
    if chunk:
        plane.append_batch(0, given_values[None], -given_values[None])
    else:
        plane.append(0, given_values, -given_values)
    assert np.array_equal(plane.keys().reshape(-1).view(np.uint16), wanted)
    assert np.array_equal(plane.values().reshape(-1).view(np.uint16), wanted ^ 0x8000)


@settings(max_examples=40)
@given(
    capacity=st.integers(1, 9),
    cuts=st.lists(st.integers(0, 26), max_size=6),
    head_major=st.booleans(),
    rotation=st.integers(0, 8),
    where=st.sampled_from([name for name in RUNS_HERE if name in ("host", "numpy")]),
)
def test_any_split_ends_where_single_appends_end(
    capacity: int, cuts: list[int], head_major: bool, rotation: int, where: str
) -> None:
    keys, values = rows(0, 26)
    start = mv.KvPlane(capacity, HEADS, DIM, head_major, where)
    start.append_batch(0, *rows(0, capacity))
    snapshot = start.snapshot()
    single, split = (mv.KvPlane.restore(snapshot, rotation % capacity, where) for _ in range(2))
    for i in range(26):
        single.append(capacity + i, keys[i], values[i])
    for first, last in pairwise(sorted({0, 26, *cuts})):
        split.append_batch(capacity + first, keys[first:last], values[first:last])
    assert everything(single) == everything(split)


@settings(max_examples=40)
@given(
    capacity=st.integers(1, 9),
    before=st.integers(0, 30),
    after=st.integers(0, 12),
    head_major=st.booleans(),
)
def test_restore_then_continue_equals_never_having_stopped(
    capacity: int, before: int, after: int, head_major: bool
) -> None:
    kept = mv.KvPlane(capacity, HEADS, DIM, head_major)
    for i in range(before):
        kept.append(i, *(part[0] for part in rows(i, 1)))
    back = mv.KvPlane.restore(kept.snapshot())
    assert everything(back) == everything(kept)
    query = mv.seeded(4, 4, DIM)
    for plane in (kept, back):
        plane.append_batch(before, *rows(before, after))
    assert everything(back) == everything(kept)
    if kept.len:
        assert not mv.differing(mv.attend(back, query), mv.attend(kept, query)).any()


def test_restore_puts_rows_at_the_rotation(backend: str) -> None:
    for head_major in (False, True):
        plane = mv.KvPlane(8, HEADS, DIM, head_major, backend)
        plane.append_batch(0, *rows(0, 13))
        for rotation in range(8):
            back = mv.KvPlane.restore(plane.snapshot(), rotation, backend)
            assert (back.origin_logical, back.origin_physical, back.len) == (5, rotation, 8)
            wanted = Expected(8, HEADS, DIM)
            wanted.put(
                rotation, *(part.transpose(1, 0, 2).reshape(8, -1) for part in (plane.keys(), plane.values()))
            )
            wanted.check(back)
        assert everything(mv.KvPlane.restore(plane.snapshot(), backend=backend)) == everything(plane)


def test_restore_of_a_ring_not_full_leaves_zero_rows() -> None:
    plane = mv.KvPlane(8, HEADS, DIM)
    plane.append_batch(0, *rows(1, 3))
    back = mv.KvPlane.restore(plane.snapshot(), rotation=6)
    assert back.occupants().tolist() == [2, -1, -1, -1, -1, -1, 0, 1]
    assert not back.raw_key()[1:6].any()
    back.append_batch(3, *rows(4, 7))
    assert back.occupants().tolist() == [2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("rotation", [-1, 8, 1.5])
def test_a_rotation_outside_the_plane_is_refused(rotation: Any) -> None:
    plane = mv.KvPlane(8, HEADS, DIM)
    with pytest.raises(mv.InputError, match="rotation"):
        mv.KvPlane.restore(plane.snapshot(), rotation)


def test_what_is_handed_out_is_a_copy(backend: str) -> None:
    for head_major in (False, True):
        plane = mv.KvPlane(4, HEADS, DIM, head_major, backend)
        keys, values = rows(0, 6)
        plane.append_batch(0, keys, values)
        before = everything(plane)
        snapshot = plane.snapshot()
        held = (snapshot.keys.tobytes(), snapshot.values.tobytes())
        for array in (plane.raw_key(), plane.raw_value(), plane.keys(), plane.values(), plane.occupants()):
            array[...] = 9
        keys[...] = values[...] = 0
        plane.ring.append(6)
        assert everything(plane) == before
        plane.append_batch(6, *rows(60, 4))
        assert (snapshot.keys.tobytes(), snapshot.values.tobytes()) == held
        with pytest.raises(ValueError, match="read-only"):
            snapshot.keys[...] = 1


@pytest.mark.parametrize(
    ("position", "key", "value"),
    [
        (3, np.zeros(WIDTH, np.float16), np.zeros(WIDTH, np.float32)),
        (3, np.zeros(WIDTH, np.float32), np.zeros(WIDTH)),
        (3, np.zeros(WIDTH + 1, np.float32), np.zeros(WIDTH, np.float32)),
        (3, np.zeros((1, WIDTH), np.float32), np.zeros(WIDTH, np.float32)),
        (-1, np.zeros(WIDTH, np.float32), np.zeros(WIDTH, np.float32)),
        (3.0, np.zeros(WIDTH, np.float32), np.zeros(WIDTH, np.float32)),
        (4, np.zeros(WIDTH, np.float32), np.zeros(WIDTH, np.float32)),
        (2, np.zeros(WIDTH, np.float32), np.zeros(WIDTH, np.float32)),
    ],
)
@pytest.mark.parametrize("head_major", [False, True])
def test_after_a_refusal_every_field_and_byte_is_as_before(
    position: Any, key: Any, value: Any, head_major: bool
) -> None:
    plane = mv.KvPlane(4, HEADS, DIM, head_major)
    plane.append_batch(0, *rows(0, 3))
    before = everything(plane)
    with pytest.raises((mv.InputError, mv.CacheDiscontinuity)):
        plane.append(position, key, value)
    with pytest.raises((mv.InputError, mv.CacheDiscontinuity)):
        plane.append_batch(position, key[None], value)
    assert everything(plane) == before


def test_an_empty_chunk_changes_nothing() -> None:
    plane = mv.KvPlane(4, HEADS, DIM)
    before = everything(plane)
    empty = np.zeros((0, WIDTH), np.float32)
    plane.append_batch(0, empty, empty)
    assert everything(plane) == before
    with pytest.raises(mv.CacheDiscontinuity):
        plane.append_batch(1, empty, empty)


def test_reset_zeroes_the_buffers(backend: str) -> None:
    plane = mv.KvPlane(4, HEADS, DIM, backend=backend)
    fresh = everything(plane)
    plane.append_batch(0, *rows(1, 9))
    plane.reset()
    assert everything(plane) == fresh


def test_sizes() -> None:
    plane = mv.KvPlane(2048)
    assert (plane.nbytes, plane.live_nbytes, plane.kv_dim) == (2048 * 1024, 0, 256)
    plane.append_batch(0, mv.seeded(1, 10, 256), mv.seeded(2, 10, 256))
    assert plane.live_nbytes == 10 * 1024
    assert "token-major, capacity=2048, len=10" in repr(plane)


@pytest.mark.parametrize("sizes", [(0,), (-1,), (1.5,), (4, 0), (4, 2, 0), (1 << 24, 2, 128)])
def test_sizes_that_no_plane_has(sizes: tuple[Any, ...]) -> None:
    with pytest.raises(mv.InputError):
        mv.KvPlane(*sizes)


def test_a_copy_is_a_plane_of_its_own() -> None:
    plane = mv.KvPlane(4, HEADS, DIM)
    plane.append_batch(0, *rows(0, 4))
    before = everything(plane)
    other = copy.copy(plane)
    other.append_batch(4, *rows(4, 2))
    assert everything(plane) == before
    assert other.next_position == 6


@pytest.mark.parametrize("head_major", ["no", None, 1])
def test_a_layout_is_true_or_false(head_major: Any) -> None:
    with pytest.raises(mv.InputError, match="head_major"):
        mv.KvPlane(4, HEADS, DIM, head_major)


@pytest.mark.parametrize("head_major", [False, True])
def test_row_is_a_physical_row_as_it_lies(backend: str, head_major: bool) -> None:
    plane = mv.KvPlane(5, 2, 4, head_major, backend)
    keys, values = mv.seeded(1, 7, 8), mv.seeded(2, 7, 8)
    plane.append_batch(0, keys, values)
    for token in range(2, 7):
        key, value = plane.row(plane.physical(token))
        assert key.dtype == value.dtype == np.float16
        assert key.tobytes() == keys[token].astype(np.float16).tobytes()
        assert value.tobytes() == values[token].astype(np.float16).tobytes()
    with pytest.raises(mv.InputError, match="physical is 5; give a whole number from 0 to 4"):
        plane.row(5)
