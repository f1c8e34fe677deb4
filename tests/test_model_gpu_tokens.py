"""Prepared tokens: shared by planes, used up, left and made again."""

from __future__ import annotations

import threading
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from captured import CapturedDevice

import muser_viz as mv
from muser_viz import launches
from muser_viz.model import gpu_tokens
from muser_viz.model.caches import PlaneCache, model_caches
from muser_viz.model.gpu_reading import GpuReading
from muser_viz.model.gpu_tokens import position_on_gpu
from muser_viz.model.reading import KINDS

SMALL = mv.Geometry(4, 32, 2, 16, 512, 4)


def test_planes_in_one_state_share_a_launch(captured: CapturedDevice) -> None:
    readings = [GpuReading(mv.KvPlane(32, 2, 16), captured) for _ in range(3)]
    row = mx.array(mv.seeded(1, 1, 2, 1, 16))
    for reading in readings:
        reading.one(row, row, "float32")
    assert len({id(reading._last) for reading in readings}) == 1
    assert len({id(reading.plane._ring) for reading in readings}) == 1
    readings[0].plane.append(1, mv.seeded(2, 32), mv.seeded(3, 32))
    assert [reading.plane.len for reading in readings] == [2, 1, 1]


def test_a_session_goes_on_in_another_thread(captured: CapturedDevice) -> None:
    """A lazy array of MLX is its thread's own; what planes share is made again there."""
    readings = [GpuReading(mv.KvPlane(32, 2, 16), captured) for _ in range(2)]
    row = mx.array(mv.seeded(1, 1, 2, 1, 16))
    mx.eval(row, [reading.one(row, row, "float32") for reading in readings])
    failed: list[BaseException] = []

    def go_on() -> None:
        try:
            mx.eval([readings[0].one(row, row, "float32") for _ in range(3)])
            launches.project(captured, mx.array(mv.seeded(2, 4)), 4, 8, 1)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=go_on)
    thread.start()
    thread.join()
    assert not failed
    mx.eval([readings[1].one(row, row, "float32") for _ in range(3)])
    assert [reading.plane.len for reading in readings] == [4, 4]
    assert readings[0].plane.raw_key().tobytes() == readings[1].plane.raw_key().tobytes()


def test_from_the_second_token_on_those_after_it_are_prepared(
    captured: CapturedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_tokens, "_AHEAD", 5)
    reading = GpuReading(mv.KvPlane(32, 2, 16), captured)
    row = mx.array(mv.seeded(1, 1, 2, 1, 16))
    prepared = []
    for position in range(8):
        prepared.append(reading.again(row, row) is not None)
        if not prepared[-1]:
            reading.one(row, row, "float32")
        assert reading.plane.next_position == position + 1
    assert prepared == [False, False, True, True, True, True, False, True]
    reading.trim(mv.Ring(32, len=6))
    assert reading.again(row, row) is None
    reading.one(row, row, "float32")
    assert reading.again(row, row) is None  # one alone after a break
    assert reading.plane.next_position == 7


def test_the_last_position_is_stored_and_counted(captured: CapturedDevice) -> None:
    plane = mv.KvPlane(4, 2, 16)
    plane.advance(mv.Ring(4, len=4, origin_logical=(1 << 32) - 5))
    row = mx.array(mv.seeded(1, 1, 2, 1, 16))
    reading = GpuReading(plane, captured)
    reading.one(row, row, "float32")
    assert plane.next_position == 1 << 32
    before = plane.raw_key().tobytes()
    with pytest.raises(mv.InputError, match="position is 4294967296"):
        reading.one(row, row, "float32")
    assert plane.raw_key().tobytes() == before


@pytest.mark.usefixtures("captured")
@pytest.mark.parametrize("many", [1 << 22, 0, 1000])
def test_prepared_tokens_are_used_up_left_and_made_again(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """Over more tokens than are prepared together; left for a chunk, a trim, another type, a store."""
    monkeypatch.setattr(gpu_tokens, "_MANY", many)
    monkeypatch.setattr(gpu_tokens, "_AHEAD", 5)
    ours, host = (
        [PlaneCache(mv.KvStore(SMALL, 64, backend=name), 3) for _ in range(2)] for name in (None, "numpy")
    )
    assert isinstance(ours[0]._reading(), GpuReading)
    done = 0

    def both(count: int, kind: Any = mx.float32) -> None:
        nonlocal done
        for own, other in zip(ours, host, strict=True):
            keys, values = (mx.array(mv.seeded(7 + done + n, 1, 2, count, 16)).astype(kind) for n in (0, 50))
            for a, b in zip(
                own.update_and_fetch(keys, values), other.update_and_fetch(keys, values), strict=True
            ):
                assert a.dtype == b.dtype == kind
                assert np.array_equal(np.array(a.astype(mx.float32)), np.array(b.astype(mx.float32)))
        done += count

    for _ in range(13):
        both(1)
    assert ours[0]._reading()._last is ours[1]._reading()._last  # type: ignore[attr-defined]
    both(3)
    both(1)
    both(1, mx.bfloat16)
    both(1)
    for cache in (*ours, *host):
        cache.trim(2)
    both(1)
    for cache in (*ours, *host):
        cache.plane.append(cache.plane.next_position, mv.seeded(5, 32), mv.seeded(6, 32))
    for _ in range(7):
        both(1)
    for own, other in zip(ours, host, strict=True):
        assert own.plane.ring == other.plane.ring
        assert own.plane.raw_key().tobytes() == other.plane.raw_key().tobytes()
        assert own.plane.raw_value().tobytes() == other.plane.raw_value().tobytes()


def test_rows_handed_over_are_the_fence(captured: CapturedDevice) -> None:
    for kind in KINDS:
        reading = GpuReading(mv.KvPlane(32, 2, 16), captured)
        row = mx.array(mv.seeded(1, 1, 2, 1, 16)).astype(kind)
        reading.one(row, row, KINDS[kind])
        assert reading.arrays[0].shape == (1, 2, 32, 16)
        assert reading.arrays[0].dtype == kind
        assert reading.copy_nbytes == 32 * 32 * kind.size


def test_positions_lie_on_the_gpu_and_rope_turns_by_them_as_by_numbers() -> None:
    """From 2**31 on MLX refuses the number itself."""
    heads = mx.array(mv.seeded(1, 1, 2, 1, 16))
    for position in (0, 1, 63, 64, 2047, 2048, 131_071, (1 << 31) - 65):
        at = position_on_gpu(position)
        assert (at.shape, at.dtype, int(at)) == ((), mx.int32, position)
        turned = [
            np.array(mx.fast.rope(heads, 16, traditional=False, base=1e4, scale=1.0, offset=offset))
            for offset in (at, position)
        ]
        assert turned[0].tobytes() == turned[1].tobytes()
    assert int(position_on_gpu((1 << 31) - 1)) == (1 << 31) - 1
    assert position_on_gpu(1 << 31) == 1 << 31
    assert position_on_gpu((1 << 32) - 1) == (1 << 32) - 1


@pytest.mark.usefixtures("captured")
def test_a_cache_of_a_gpu_says_its_position_there() -> None:
    """Whatever a user does with one that they were given; also after a store, or a trim, of another."""
    cache = PlaneCache(mv.KvStore(SMALL, 64), 3)
    row = mx.array(mv.seeded(1, 1, 2, 1, 16))
    for position in range(5):
        at = cache.offset
        assert isinstance(at, mx.array)
        assert at.item() == position
        at += 7
        assert cache.offset.item() == position
        cache.update_and_fetch(row, row)
    cache.trim(2)
    assert cache.offset.item() == 3
    cache.update_and_fetch(row, row)
    cache.plane.append(4, mv.seeded(5, 32), mv.seeded(6, 32))
    assert cache.offset.item() == 5
    assert cache.make_mask(1) is None


def one_by_one(caches: list[PlaneCache], count: int) -> None:
    """Tokens in every layer."""
    for _ in range(count):
        row = mx.array(mv.seeded(caches[0].plane.next_position, 1, 2, 1, 16))
        for cache in caches:
            cache.update_and_fetch(row, row)


@pytest.mark.usefixtures("captured")
def test_tokens_are_prepared_up_to_the_context_alone() -> None:
    store = mv.KvStore(SMALL, 40)
    caches = model_caches(store)
    one_by_one(caches, 40)
    before = [plane.raw_key().tobytes() for plane in store.planes]
    with pytest.raises(mv.ContextExhausted, match="position 40 is past max_context 40"):
        one_by_one(caches, 1)
    assert [plane.raw_key().tobytes() for plane in store.planes] == before
    assert store.positions == {40}


@pytest.mark.usefixtures("captured")
def test_a_prepared_token_is_looked_at_while_a_step_is_open() -> None:
    store = mv.KvStore(SMALL, 64)
    caches = model_caches(store)
    one_by_one(caches, 5)
    with (
        pytest.raises(mv.InputError, match="the open step is of 2 from 5"),
        store.step(5, 2),
    ):
        one_by_one(caches, 1)
    assert store.positions == {5}
    with store.step(5):
        one_by_one(caches, 1)
    one_by_one(caches, 1)
    assert store.positions == {7}


def test_a_prepared_token_waits_for_who_touched_v_alone(captured: CapturedDevice) -> None:
    reading = GpuReading(mv.KvPlane(32, 2, 16), captured)
    row = mx.array(mv.seeded(1, 1, 2, 1, 16))
    for _ in range(3):
        reading.one(row, row, "float32")
    waited_for = captured.watch(lambda inputs: inputs[-1].size)
    value: Any = reading.plane.value_cache
    value.fence = mx.zeros((1,), mx.uint32)
    reading.one(row, row, "float32")
    assert waited_for == [2]
