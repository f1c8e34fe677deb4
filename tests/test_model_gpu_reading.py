"""A GPU's planes under a model, with the source that MLX generates for Metal run by the CPU."""

from __future__ import annotations

import copy
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from captured import CapturedDevice

import muser_viz as mv
from muser_viz.devices.protocol import KINDS
from muser_viz.model import gpu_reading, gpu_tokens
from muser_viz.model.build import small_model
from muser_viz.model.caches import PlaneCache, model_caches
from muser_viz.model.gpu_reading import GpuReading
from muser_viz.model.runs import feed_model, peer_caches

SMALL = mv.Geometry(4, 32, 2, 16, 512, 4)
TOKENS = (np.arange(300) * 37 + 11) % 64


def made(kind: Any = "float32") -> Any:
    return small_model(SMALL, hidden=32, feed_forward=32, vocab=64, kind=kind)


@pytest.mark.parametrize("many", [0, 1 << 22])
@pytest.mark.parametrize("kind", list(KINDS))
def test_the_bits_are_the_hosts_and_the_peers(
    captured: CapturedDevice, monkeypatch: pytest.MonkeyPatch, kind: Any, many: int
) -> None:
    monkeypatch.setattr(gpu_tokens, "_MANY", many)
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
    assert token == ["muser_kv_store_rows_f16"] * 4  # a launch a layer, whichever rows it hands over
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


def test_nothing_is_evaluated_on_the_way(captured: CapturedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
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
    # the scalars of coming tokens, and positions
    assert {words.dtype for words in queued} <= {mx.uint32, mx.int32}
    monkeypatch.undo()
    mx.eval(said)


@pytest.mark.usefixtures("captured")
@pytest.mark.parametrize(
    ("given", "layers"), [({}, [9, 25]), ({"begin": [1, 2, 99]}, [1, 2]), ({"begin": ()}, [])]
)
def test_the_gpu_begins_before_the_last_layer_is_queued(
    monkeypatch: pytest.MonkeyPatch, given: Any, layers: list[int]
) -> None:
    """With all that was queued up to a layer, its store included: the fence after it.

    With a token only where the thread waits between tokens; with a chunk always.
    """
    waiting = [True]
    monkeypatch.setattr(gpu_reading, "Waits", lambda: lambda: waiting[0])
    caches = model_caches(mv.KvStore(mv.Geometry(26, 32, 2, 16, 512, 4), 64), **given)
    begun: list[Any] = []
    monkeypatch.setattr(gpu_reading, "_queue", begun.extend)
    for session in (caches, copy.deepcopy(caches)):
        for count, waiting[0] in ((1, True), (1, True), (40, False), (1, False), (5, True), (1, True)):
            begun.clear()
            for cache in session:
                rows = mx.array(mv.seeded(cache.layer, 1, 2, count, 16))
                cache.update_and_fetch(rows, rows)
            expected = layers if count > 1 or waiting[0] else []
            assert [cache.layer for each in begun for cache in session if each is cache.state[0]] == expected
            assert len(begun) == len(expected)
    with pytest.raises(mv.InputError, match="begin is -1; give a whole number"):
        model_caches(mv.KvStore(SMALL, 64), [-1])


@pytest.mark.usefixtures("captured")
@pytest.mark.parametrize("many", [0, 1 << 22])
def test_a_reader_of_k_alone_between_two_tokens(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """K and V then have fences of different shapes and types."""
    monkeypatch.setattr(gpu_tokens, "_MANY", many)
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


def test_every_store_stays_behind_the_fence(
    captured: CapturedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever becomes of the rows that were handed over: launches are counted along the fence."""

    def counted(*_launched: Any, inputs: list[Any], **shape: Any) -> list[Any]:
        count = inputs[-1].reshape(-1)[0].astype(mx.float32) + 1
        kinds = zip(shape["output_shapes"], shape["output_dtypes"], strict=True)
        return [(mx.zeros(size) + count).astype(dtype) for size, dtype in kinds]

    monkeypatch.setattr(captured, "call", counted)
    reading = GpuReading(mv.KvPlane(32, 2, 16), captured)
    row = mx.array(mv.seeded(1, 1, 2, 1, 16))
    for _ in range(40):
        key, value = reading.one(row, row, "float32")
        key[...] = 0
        value[:] = 0
    assert reading.arrays[0].max() == 40


def test_other_shapes_and_types_are_refused_where_mlx_repeats_a_trace(
    captured: CapturedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was traced for K and V of a kind is not repeated for others, and they change nothing."""

    def lazily(*_launched: Any, inputs: list[Any], **shape: Any) -> list[Any]:
        kinds = zip(shape["output_shapes"], shape["output_dtypes"], strict=True)
        return [mx.broadcast_to(inputs[0].sum(), size).astype(dtype) for size, dtype in kinds]

    traced: list[int] = []

    def noted(launch: Any) -> Any:
        def call(*inputs: Any) -> Any:
            traced.append(1)
            return launch(*inputs)

        return mx.compile(call)

    monkeypatch.setattr(captured, "call", lazily)
    monkeypatch.setattr(captured, "traced", noted)
    store = mv.KvStore(SMALL, 64)
    cache = PlaneCache(store, 3)
    row = mx.array(mv.seeded(1, 1, 2, 1, 16))
    for _ in range(5):
        key, _ = cache.update_and_fetch(row, row)
    assert float(key.sum()) == pytest.approx(float(row.sum()) * key.size, rel=1e-3)
    assert len(traced) <= 2  # the fence of a plane that no kernel touched has another shape
    before = store.planes[3].ring
    for keys, values, said in (
        (row[:, :, :, :8], row[:, :, :, :8], "2 heads of 8"),
        (row, row[:, :1], "values \\(1, 1, 1, 16\\)"),
        (row.astype(mx.int32), row, "keys are mlx.core.int32"),
        (np.array(row), np.array(row), "keys are float32"),
    ):
        with pytest.raises(mv.InputError, match=said):
            cache.update_and_fetch(keys, values)
        assert store.planes[3].ring == before
    for _ in range(2):
        assert cache.update_and_fetch(row, row.astype(mx.bfloat16))[0].dtype == mx.float32
    before_these = len(traced)
    for _ in range(20):
        cache.update_and_fetch(row, row.astype(mx.bfloat16))
    assert len(traced) == before_these  # what does not fit is kept as a trace too, once
    assert cache.update_and_fetch(row, row)[0].shape == (1, 2, 28, 16)
