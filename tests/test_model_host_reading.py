"""What the host's copy of a plane holds: the plane's rows, in the model's type, bit for bit."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import pytest

import muser_viz as mv
from muser_viz.model.host_reading import HostReading
from muser_viz.model.row_copy import bfloat16_words


def test_every_f16_as_bf16_is_what_mlx_gives() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    number = ~np.isnan(every)
    wanted = np.array(mx.array(every).astype(mx.bfloat16).view(mx.uint16))
    assert np.array_equal(bfloat16_words(every)[number], wanted[number])
    back = mx.array(bfloat16_words(every)).view(mx.bfloat16).astype(mx.float32)
    assert np.array_equal(np.isnan(np.array(back)), ~number)


@pytest.mark.parametrize("head_major", [False, True])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", [mx.float32, mx.float16, mx.bfloat16], ids=["f32", "f16", "bf16"])
def test_the_copy_is_the_plane_at_every_step(kind: Any, last: bool, head_major: bool) -> None:
    plane = mv.KvPlane(32, 2, 8, head_major)
    kept, copied = HostReading(plane, "copy", last), HostReading(plane, "plane", last)
    made = mx.array(mv.seeded(1, 90, 2, 1, 8)).astype(kind)
    place = 0
    for size in (1, 5, 10, 1, 1, 14, *[1] * 40):
        rows = mx.concatenate([made[i][None] for i in range(place, place + size)], axis=2)
        held = kept.live(kind) if place else None
        before = None if held is None else [np.array(each.astype(mx.float32)) for each in held]
        kept.store(rows, -rows, 0, None)
        found, wanted = kept.live(kind), copied.live(kind)
        assert all(mx.array_equal(a, b) for a, b in zip(found, wanted, strict=True)), place
        assert found[0].shape == (1, 2, plane.len, 8)
        if before is not None and last and not head_major:  # a growing plane never overwrites a row
            after = [np.array(each.astype(mx.float32)) for each in held or ()]
            assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
        place += size
    assert kept.copy_nbytes == plane.nbytes * (2 if kind == mx.float32 else 1)
    assert copied.copy_nbytes == 0


def test_a_full_rings_keys_lie_by_element_in_f32() -> None:
    plane = mv.KvPlane(32, 2, 8)
    reading = HostReading(plane, "copy", False)
    row = mx.array(mv.seeded(1, 1, 2, 1, 8))
    for position in range(40):
        reading.store(row * position, row, 0, None)
        reading.live(mx.float32)
        assert reading.arrays[0].shape == ((2, 8, 32) if position >= 31 else (2, 32, 8))
