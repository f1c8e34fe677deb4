"""What a model on the host is handed: the plane's rows, in the model's type, bit for bit."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import pytest

import muser_viz as mv
from muser_viz.devices.protocol import KINDS
from muser_viz.model.host_reading import HostReading


@pytest.mark.parametrize("head_major", [False, True])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", list(KINDS))
def test_what_is_handed_over_is_the_plane_at_every_step(
    cpu_backend: str, kind: Any, last: bool, head_major: bool
) -> None:
    plane = mv.KvPlane(32, 2, 8, head_major, cpu_backend)
    reading = HostReading(plane, last)
    type_ = getattr(mx, kind)
    made = mx.array(mv.seeded(1, 90, 2, 1, 8)).astype(type_)
    place = 0
    for size in (1, 5, 10, 1, 1, 14, *[1] * 40):
        rows = mx.concatenate([made[i][None] for i in range(place, place + size)], axis=2)
        held = reading.live(kind) if place else None
        before = None if held is None else [np.array(each.astype(mx.float32)) for each in held]
        one = size == 1
        found = reading.one(rows, -rows, kind) if one else reading.chunk(rows, -rows, kind, False)
        raw = (plane.raw_key(), plane.raw_value())
        wanted = [each if head_major else each.reshape(32, 2, 8).transpose(1, 0, 2) for each in raw]
        for own, plain in zip(found, wanted, strict=True):
            assert own.dtype == type_
            assert mx.array_equal(own, mx.array(plain)[None, :, : plane.len].astype(type_)), place
        if before is not None:  # what was handed over by a read stays as it was
            after = [np.array(each.astype(mx.float32)) for each in held or ()]
            assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
        place += size
    kept = 0 if last and not head_major else plane.nbytes * (2 if kind == "float32" else 1)
    assert reading.copy_nbytes == kept
    rounded = np.array(made[place - 1].astype(mx.float32)).astype(np.float16).reshape(2, 8)
    assert np.array_equal(plane.keys()[:, -1], rounded)


def test_a_full_rings_keys_lie_by_element_in_f32() -> None:
    plane = mv.KvPlane(32, 2, 8)
    reading = HostReading(plane, False)
    row = mx.array(mv.seeded(1, 1, 2, 1, 8))
    for position in range(40):
        reading.one(row * position, row, "float32")
        assert reading.arrays[0].shape == ((1, 2, 8, 32) if position >= 31 else (1, 2, 32, 8))
