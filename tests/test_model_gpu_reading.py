"""A GPU's planes under a model, with the source that MLX generates for Metal run by the CPU."""

from __future__ import annotations

import copy
import threading
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from captured import CapturedDevice

import muser_viz as mv
from muser_viz import devices, launches
from muser_viz.devices.protocol import KINDS
from muser_viz.model import gpu_reading
from muser_viz.model.build import small_model
from muser_viz.model.caches import PlaneCache, model_caches
from muser_viz.model.gpu_reading import GpuReading
from muser_viz.model.runs import feed_model, peer_caches

SMALL = mv.Geometry(4, 32, 2, 16, 512, 4)
TOKENS = (np.arange(300) * 37 + 11) % 64
OPEN = devices.device


class Captured(CapturedDevice):
    """The captured device, with a list of what it launched."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def call(self, name: str, *rest: Any, **given: Any) -> list[Any]:
        self.calls.append(name)
        return super().call(name, *rest, **given)


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> Captured:
    device = Captured()
    monkeypatch.setattr(
        devices, "device", lambda name=None: OPEN(name) if name in ("host", "numpy") else device
    )
    return device


def made(kind: Any = "float32") -> Any:
    return small_model(SMALL, hidden=32, feed_forward=32, vocab=64, kind=kind)


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_bits_are_the_hosts_and_the_peers(captured: Captured, kind: Any) -> None:
    model = made(kind)
    store = mv.KvStore(SMALL, 256)
    caches = model_caches(store)
    host = mv.KvStore(SMALL, 256, backend="host" if mv.backends()["host"].available else "numpy")
    others = model_caches(host)
    peer = peer_caches(model, rounded=True)
    done = 0
    for size in (20, 20, 24, 1, 1, 1):
        said = [feed_model(model, c, TOKENS[done : done + size], size) for c in (caches, others, peer)]
        done += size
        assert not mv.differing(said[0], said[1]).any(), size
        assert not mv.differing(said[0], said[2]).any(), size
    for own, other in zip(store.planes, host.planes, strict=True):
        assert own.ring == other.ring
        assert own.raw_key().tobytes() == other.raw_key().tobytes()
        assert own.raw_value().tobytes() == other.raw_value().tobytes()
    token = captured.calls[-4:]
    assert token == ["muser_kv_store_rows_f16"] * 4
    assert set(captured.calls) == {"muser_kv_store_batch_f16", "muser_kv_rows_f16", *token}


@pytest.mark.usefixtures("captured")
def test_a_plane_that_a_model_fills_is_a_plane() -> None:
    model = made()
    store = mv.KvStore(SMALL, 256)
    caches = model_caches(store)
    feed_model(model, caches, TOKENS[:35], 35)
    again = store.turned()
    row = mv.seeded(1, 4, 32)
    store.append(35, row, row)
    again.append(35, row, row)
    assert [p.raw_key().tobytes() for p in store.planes] == [p.raw_key().tobytes() for p in again.planes]
    before = [p.raw_value().tobytes() for p in store.planes]
    with pytest.raises(ZeroDivisionError), store.step(36):
        feed_model(model, caches, [3])
        raise ZeroDivisionError
    assert [p.raw_value().tobytes() for p in store.planes] == before
    assert not caches[0].is_trimmable()
    branch = copy.deepcopy(caches)
    wanted = feed_model(model, caches, [9])
    assert not mv.differing(feed_model(model, branch, [9]), wanted).any()
    assert branch[0].plane.key_cache is not caches[0].plane.key_cache
    for plane in store.planes:
        plane.reset()
    wanted = feed_model(model, model_caches(mv.KvStore(SMALL, 256)), TOKENS[:3])
    assert not mv.differing(feed_model(model, caches, TOKENS[:3]), wanted).any()
    assert [rows.shape for rows in caches[0].keys_and_values()] == [(1, 2, 3, 16)] * 2
    caches[0].trim(1)
    assert caches[0].offset == 2
    assert len(caches[0].state) == 1


def test_nothing_is_evaluated_on_the_way(captured: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole graph of a step is built before anything waits."""
    model = made()
    caches = model_caches(mv.KvStore(SMALL, 256))
    feed_model(model, caches, TOKENS[:40], 40)

    def lazily(*_launched: Any, inputs: list[Any], **shape: Any) -> list[Any]:
        return [mx.zeros(size) + inputs[0].sum() for size in shape["output_shapes"]]

    monkeypatch.setattr(captured, "call", lazily)
    waited: list[Any] = []
    queued: list[Any] = []
    monkeypatch.setattr(mx, "eval", lambda *arrays: waited.append(arrays))
    monkeypatch.setattr(mx, "async_eval", queued.extend)
    said = model(mx.array([[5]]), cache=caches)
    said = model(mx.array([[5, 6, 7]]), cache=caches)
    assert not waited
    assert {words.dtype for words in queued} == {mx.uint32}  # the scalars of coming tokens
    monkeypatch.undo()
    mx.eval(said)


def test_planes_in_one_state_share_a_launch(captured: Captured) -> None:
    readings = [GpuReading(mv.KvPlane(32, 2, 16), captured) for _ in range(3)]
    row = mx.array(mv.seeded(1, 1, 2, 1, 16))
    for reading in readings:
        reading.one(row, row, "float32")
    assert len({id(reading._last) for reading in readings}) == 1
    assert len({id(reading.plane._ring) for reading in readings}) == 1
    readings[0].plane.append(1, mv.seeded(2, 32), mv.seeded(3, 32))
    assert [reading.plane.len for reading in readings] == [2, 1, 1]


def test_a_session_goes_on_in_another_thread(captured: Captured) -> None:
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


def test_the_last_position_is_stored_and_counted(captured: Captured) -> None:
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
@pytest.mark.parametrize("few", [0, 1 << 19])
def test_prepared_tokens_are_used_up_left_and_made_again(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Over more tokens than are prepared together; left for a chunk, a trim, another type, a store."""
    monkeypatch.setattr(gpu_reading, "_FEW", few)
    monkeypatch.setattr(gpu_reading, "_AHEAD", 5)
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
        cache.plane.append(cache.offset, mv.seeded(5, 32), mv.seeded(6, 32))
    for _ in range(7):
        both(1)
    for own, other in zip(ours, host, strict=True):
        assert own.plane.ring == other.plane.ring
        assert own.plane.raw_key().tobytes() == other.plane.raw_key().tobytes()
        assert own.plane.raw_value().tobytes() == other.plane.raw_value().tobytes()


def test_rows_handed_over_are_the_fence_where_they_are_few(
    captured: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = GpuReading(mv.KvPlane(32, 2, 16), captured)
    row = mx.array(mv.seeded(1, 1, 2, 1, 16))
    reading.one(row, row, "float32")
    assert reading.arrays[0].shape == (1, 2, 32, 16)
    monkeypatch.setattr(gpu_reading, "_FEW", 0)
    reading = GpuReading(mv.KvPlane(32, 2, 16), captured)
    reading.one(row, row, "bfloat16")
    assert reading.arrays[0].shape == (1,)


@pytest.mark.usefixtures("captured")
def test_a_reader_of_k_alone_between_two_tokens() -> None:
    """K and V then have fences of different shapes and types."""
    caches = [PlaneCache(mv.KvStore(SMALL, 64, backend=name), 3) for name in (None, "numpy")]
    query = mv.seeded(3, 4, 16)
    for kind in (mx.float32, mx.bfloat16):
        rows = mx.array(mv.seeded(1, 1, 2, 1, 16)).astype(kind)
        for cache in caches:
            cache.update_and_fetch(rows, rows)
        scored = [mv.scores(cache.plane, query) for cache in caches]
        assert scored[0].shape == scored[1].shape
    for cache in caches:
        cache.update_and_fetch(rows, rows)
    assert caches[0].plane.raw_value().tobytes() == caches[1].plane.raw_value().tobytes()


@pytest.mark.parametrize("few", [0, 1 << 19])
def test_every_store_stays_behind_the_fence(
    captured: Captured, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Whatever becomes of the rows that were handed over: launches are counted along the fence."""

    def counted(*_launched: Any, inputs: list[Any], **shape: Any) -> list[Any]:
        count = inputs[-1].reshape(-1)[0].astype(mx.float32) + 1
        kinds = zip(shape["output_shapes"], shape["output_dtypes"], strict=True)
        return [(mx.zeros(size) + count).astype(dtype) for size, dtype in kinds]

    monkeypatch.setattr(gpu_reading, "_FEW", few)
    monkeypatch.setattr(captured, "call", counted)
    reading = GpuReading(mv.KvPlane(32, 2, 16), captured)
    row = mx.array(mv.seeded(1, 1, 2, 1, 16))
    for _ in range(40):
        key, value = reading.one(row, row, "float32")
        key[...] = 0
        value[:] = 0
    assert reading.arrays[0].max() == 40
    kept = 0 if few == 0 else 32 * 32 * 4
    assert reading.copy_nbytes == kept
