"""A GPU's planes under a model, with the source that MLX generates for Metal run by the CPU."""

from __future__ import annotations

import copy
import ctypes
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from captured import CapturedDevice, _compiled, metal_source

import muser_viz as mv
from muser_viz import devices
from muser_viz.devices import mlx_gpu
from muser_viz.devices.source import catalogue
from muser_viz.model.build import small_model
from muser_viz.model.caches import model_caches
from muser_viz.model.published import PublishedDevice, published
from muser_viz.model.runs import feed_model, peer_caches

SMALL = mv.Geometry(4, 32, 2, 16, 512, 4)
TOKENS = (np.arange(300) * 37 + 11) % 64
OPEN = devices.device


class Captured(CapturedDevice):
    """The captured device, with f16 outputs that a launch allocates."""

    in_graph = False

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def _call(self, name: str, in_place: tuple[bool, ...], inputs: list[Any], **shape: Any) -> list[Any]:
        self.calls.append(name)
        if any(in_place) or mx.float16 not in shape["output_dtypes"]:
            return super()._call(name, in_place, inputs, **shape)
        mx.eval(inputs)
        run, dtypes = _compiled(metal_source(name, in_place, inputs, shape))
        made = [
            np.empty(size, np.uint32 if kind == mx.uint32 else np.float16)
            for size, kind in zip(shape["output_shapes"], shape["output_dtypes"], strict=True)
        ]
        arrays = [*(np.array(array, copy=False) for array in inputs), *made]
        assert [array.dtype for array in arrays] == [np.dtype(kind) for kind in dtypes]
        run(shape["grid"][0], (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)))
        return [mx.array(array) for array in made]


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> Captured:
    device = Captured()
    monkeypatch.setattr(
        devices, "device", lambda name=None: OPEN(name) if name in ("host", "numpy") else device
    )
    return device


def made(kind: Any = "float32") -> Any:
    return small_model(SMALL, hidden=32, feed_forward=32, vocab=64, kind=kind)


@pytest.mark.parametrize("reading", ["plane", "copy"])
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_the_bits_are_the_hosts_and_the_peers(captured: Captured, kind: Any, reading: Any) -> None:
    model = made(kind)
    store = mv.KvStore(SMALL, 256)
    caches = model_caches(store, reading)
    assert all(isinstance(plane.device, PublishedDevice) for plane in store.planes)
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
    assert set(captured.calls) == {"muser_kv_store_f16", "muser_kv_store_batch_f16"}


@pytest.mark.usefixtures("captured")
def test_a_published_plane_is_a_plane() -> None:
    model = made()
    store = mv.KvStore(SMALL, 256)
    caches = model_caches(store)
    feed_model(model, caches, TOKENS[:35], 35)
    again = store.turned()
    row = mv.seeded(1, 4, 32)
    store.append(35, row, row)  # the kernel writes in place, behind its fence
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
    caches[0].trim(1)
    assert caches[0].offset == 2
    assert len(caches[0].state) == 2


def test_a_plane_of_the_host_is_not_published() -> None:
    plane = mv.KvPlane(32, 2, 16, backend="numpy")
    assert published(plane) is None


def test_nothing_is_evaluated_on_the_way(captured: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole graph of a step is built before anything waits."""
    model = made()
    caches = model_caches(mv.KvStore(SMALL, 256))
    feed_model(model, caches, TOKENS[:40], 40)

    def lazily(name: str, in_place: Any, inputs: list[Any], **shape: Any) -> list[Any]:  # noqa: ARG001
        keys, values = (x.reshape(s) for x, s in zip(inputs[:2], shape["output_shapes"], strict=False))
        return [keys.astype(mx.float16), values.astype(mx.float16), mx.zeros((1,), mx.uint32)]

    monkeypatch.setattr(captured, "_call", lazily)
    evaluated: list[Any] = []
    monkeypatch.setattr(mx, "eval", lambda *arrays: evaluated.append(arrays))
    said = model(mx.array([[5]]), cache=caches)
    assert not evaluated
    monkeypatch.undo()
    mx.eval(said)


@pytest.mark.parametrize("name", ["muser_kv_store_f16", "muser_kv_store_batch_f16"])
def test_the_source_for_cuda_writes_rows_of_its_own(name: str) -> None:
    made = mlx_gpu.generated(catalogue()[name], "cuda", (False, False))
    assert made["output_names"] == ["key_cache", "value_cache", "muser_fence"]
    assert made["input_names"] == ["key", "value", "muser_words", "muser_before"]
    assert made["source"].endswith(catalogue()[name].body)
