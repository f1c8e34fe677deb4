"""The kernels that hand rows to a model: what they store, what they hand over, in which type."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from conftest import cases
from test_plane import rows

import muser_viz as mv
from muser_viz import devices, launches
from muser_viz.devices.protocol import KINDS
from muser_viz.launches import Handed

RING_CASES = cases("ring.json")


def by_head(plane: mv.KvPlane) -> list[np.ndarray]:
    """Both buffers, ``(n_kv_heads, capacity, head_dim)``."""
    raw = (plane.raw_key(), plane.raw_value())
    if plane.head_major:
        return list(raw)
    shape = (plane.capacity, plane.n_kv_heads, plane.head_dim)
    return [each.reshape(shape).transpose(1, 0, 2) for each in raw]


def stored(plane: mv.KvPlane, position: int, key: Any, value: Any, wanted: Handed | None = None) -> list[Any]:
    """One token through the fused kernel; what it handed over."""
    ring = plane.ring
    row = ring.append(position)
    device, token = plane.device, (plane.device.put(key), plane.device.put(value))
    handed = wanted or Handed(tuple(sorted(ring.live_spans(), key=lambda place: place.start)))
    buffers = (plane.key_cache, plane.value_cache)
    made = launches.store_rows(device, token, buffers, plane.layout, handed, row)
    plane.advance(ring)
    return [device.get(each) for each in made]


@pytest.mark.parametrize("head_major", [False, True], ids=["token-major", "head-major"])
@pytest.mark.parametrize("case", RING_CASES, ids=lambda case: str(case["id"]))
def test_the_fused_store_is_the_store_of_the_case(
    case: dict[str, Any], head_major: bool, backend: str
) -> None:
    """Single appends through the fused kernel, chunks through the batch kernel: the plane's own bytes."""
    fused, plain = (mv.KvPlane(case["capacity"], 2, 4, head_major, backend) for _ in range(2))
    for step in case["steps"]:
        if "error" in step:
            continue
        keys, values = rows(step["position"], step.get("count", 1))
        if step["op"] == "append":
            made = stored(fused, step["position"], keys[0], values[0])
            assert plain.append(step["position"], keys[0], values[0]) == step["row"]
            live = np.flatnonzero(plain.occupants() >= 0)
            for handed, held in zip(made, by_head(plain), strict=True):
                assert np.array_equal(handed[0], held[:, live].astype(np.float32))
        else:
            for plane in (fused, plain):
                plane.append_batch(step["position"], keys, values)
        assert fused.ring == plain.ring
        assert fused.raw_key().tobytes() == plain.raw_key().tobytes()
        assert fused.raw_value().tobytes() == plain.raw_value().tobytes()


@pytest.mark.parametrize("head_major", [False, True], ids=["token-major", "head-major"])
def test_earlier_rows_and_a_chunk_in_temporal_order(head_major: bool, backend: str) -> None:
    plane = mv.KvPlane(8, 2, 4, head_major, backend)
    keys, values = rows(0, 14)
    plane.append_batch(0, keys[:11], values[:11])
    before = plane.raw_key().tobytes()
    chunk = (plane.device.put(keys[11:]), plane.device.put(values[11:]))
    places = mv.Ring(8, len=7, origin_physical=plane.physical(4)).live_spans()
    made = launches.rows(
        plane.device, chunk, (plane.key_cache, plane.value_cache), plane.layout, Handed(places, 3, room=12)
    )
    for handed, given in zip(made, (keys, values), strict=True):
        found = plane.device.get(handed)
        wanted = given[4:].astype(np.float16).reshape(10, 2, 4).transpose(1, 0, 2)
        assert np.array_equal(found[0, :, :10], wanted.astype(np.float32))
        assert found.shape == (1, 2, 12, 4)
        assert not found[0, :, 10:].any()
    assert plane.raw_key().tobytes() == before


def test_one_row_into_arrays_that_others_are_in(cpu_backend: str) -> None:
    """What a host's copy of a plane does: the newest row alone, K with its elements outermost or not."""
    for by_element in (False, True):
        plane = mv.KvPlane(6, 2, 4, backend=cpu_backend)
        out = (np.full(48, 9, np.float32), np.full(48, 9, np.float32))
        for position in range(9):
            key, value = (each[0] for each in rows(position, 1))
            row, ring = position % 6, plane.ring
            ring.append(position)
            handed = Handed((slice(row, row + 1),), 0, row, 6, by_element)
            buffers = (plane.key_cache, plane.value_cache)
            launches.store_rows(plane.device, (key, value), buffers, plane.layout, handed, row, out)
            plane.advance(ring)
            shape = (2, 4, 6) if by_element else (2, 6, 4)
            held = out[0].reshape(shape).swapaxes(1, 2) if by_element else out[0].reshape(shape)
            live = plane.occupants() >= 0
            assert np.array_equal(held[:, live], by_head(plane)[0][:, live].astype(np.float32))
            assert (held[:, ~live] == 9).all()
            assert np.array_equal(out[1].reshape(2, 6, 4)[:, live], by_head(plane)[1][:, live])


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_f16_in_the_models_type_is_what_mlx_gives(cpu_backend: str, kind: Any) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    device, layout = devices.device(cpu_backend), mv.KvPlane(1 << 13, 1, 8, backend="numpy").layout
    nothing = np.zeros(1, KINDS[kind])
    buffer = device.buffer(every.reshape(layout.shape))
    wanted = Handed((slice(0, 1 << 13),))
    found, _ = launches.rows(device, (nothing, nothing), (buffer, buffer), layout, wanted, None, kind)
    type_ = getattr(mx, kind)
    by_mlx = np.array(mx.array(every).astype(type_).view(mx.uint32 if kind == "float32" else mx.uint16))
    number = ~np.isnan(every)
    assert np.array_equal(found.reshape(-1).view(by_mlx.dtype)[number], by_mlx[number])
    assert np.isnan(np.array(mx.array(found).view(type_).astype(mx.float32)).reshape(-1)[~number]).all()


def test_a_bf16_row_is_stored_as_its_f32_is(cpu_backend: str) -> None:
    words = np.arange(1 << 16, dtype=np.uint16)
    as_f32 = (words.astype(np.uint32) << 16).view(np.float32)
    number = ~np.isnan(as_f32)
    device, layout = devices.device(cpu_backend), mv.KvPlane(1 << 13, 1, 8, backend="numpy").layout
    ring = mv.Ring(1 << 13)
    reserved = ring.append_batch(0, 1 << 13)
    held = []
    for given, kind in ((words, "bfloat16"), (as_f32, "float32")):
        buffers = [device.buffer(np.zeros(layout.shape, np.float16)) for _ in range(2)]
        launches.store_batch(device, given, given, *buffers, layout, reserved, kind)  # type: ignore[arg-type]
        held.append(device.get(buffers[0]).reshape(-1).view(np.uint16)[number])
    assert np.array_equal(*held)


def test_a_row_that_is_not_handed_over_is_not_stored_in_silence() -> None:
    plane = mv.KvPlane(8, 1, 4, backend="numpy")
    token = (np.zeros(4, np.float32), np.zeros(4, np.float32))
    buffers = (plane.key_cache, plane.value_cache)
    with pytest.raises(mv.KernelError, match="row 5 is not among"):
        launches.store_rows(plane.device, token, buffers, plane.layout, Handed((slice(0, 2),)), 5)


def test_an_output_of_the_launch_is_of_its_kind() -> None:
    device = devices.device("numpy")
    plane = mv.KvPlane(4, 1, 8, backend="numpy")
    buffers = (plane.key_cache, plane.value_cache)
    wanted = Handed((slice(0, 4),))
    for kind, dtype in KINDS.items():
        nothing = np.zeros(1, dtype)
        made = launches.rows(device, (nothing, nothing), buffers, plane.layout, wanted, None, kind)
        assert [each.dtype for each in made] == [dtype] * 2
