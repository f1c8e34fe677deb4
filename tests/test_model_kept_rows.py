"""Rows that are kept in MLX's memory, against a copy of all of them."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from captured import CapturedDevice

import muser_viz as mv
from muser_viz import devices
from muser_viz.model import gpu_tokens
from muser_viz.model.gpu_reading import GpuReading
from muser_viz.model.host_reading import HostReading


def test_of_many_rows_one_is_handed_over_a_token(
    captured: CapturedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past 256 rows, where the arrays grow; whatever a user does with what they are given."""
    another = CapturedDevice()
    kept = GpuReading(mv.KvPlane(300, 2, 8), captured)
    monkeypatch.setattr(devices, "device", lambda _=None: another)
    copied = GpuReading(mv.KvPlane(300, 2, 8), another)
    for token in range(310):
        row = mx.array(mv.seeded(token, 1, 2, 1, 8))
        monkeypatch.setattr(gpu_tokens, "_MANY", 1 << 22)
        wanted = copied.one(row, -row, "float32")
        monkeypatch.setattr(gpu_tokens, "_MANY", 0)
        pair = kept.one(row, -row, "float32")
        for own, other in zip(pair, wanted, strict=True):
            assert own.shape == other.shape
            assert np.array_equal(np.array(own), np.array(other))
            own[...] = 0
    assert kept.plane.raw_key().tobytes() == copied.plane.raw_key().tobytes()
    assert captured.calls.count("muser_kv_rows_f16") == 1
    rows = 2 * 300 * 16 * 4
    assert (kept.copy_nbytes, copied.copy_nbytes) == (rows + 16 * 4, rows // 2)
    kept.chunk(mx.zeros((1, 2, 3, 8)), mx.zeros((1, 2, 3, 8)), "float32", True)
    assert kept.copy_nbytes == 0


@pytest.mark.parametrize("told", [False, True])
def test_after_a_trim_no_row_of_before_is_handed_over(
    captured: CapturedDevice, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    """Arrays that had grown past 256 rows hold more than are live then; another set of caches may trim."""
    monkeypatch.setattr(gpu_tokens, "_MANY", 0)
    reading = GpuReading(mv.KvPlane(600, 1, 8), captured)
    other = GpuReading(reading.plane, captured)
    row = mx.array(mv.seeded(1, 1, 1, 1, 8))
    for token in range(260):
        reading.one(row * token, row, "float32")
    (reading if told else other).trim(mv.Ring(600, len=255))
    key, value = reading.one(-row, -row, "float32")
    assert key.shape == value.shape == (1, 1, 256, 8)
    assert np.array_equal(np.array(key)[0, 0], reading.plane.raw_key()[:256].astype(np.float32))


def test_rows_of_a_plane_that_was_emptied_are_not_kept(
    captured: CapturedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_tokens, "_MANY", 50)
    reading = GpuReading(mv.KvPlane(32, 1, 8), captured)
    row = mx.array(mv.seeded(1, 1, 1, 1, 8))
    for _ in range(10):
        reading.one(row, row, "float32")
    assert reading.copy_nbytes > 2 * 32 * 8 * 4
    reading.plane.reset()
    reading.one(row, row, "float32")
    assert reading.copy_nbytes == 32 * 8 * 4  # the fence


def test_rows_with_a_gap_are_copied(captured: CapturedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is handed over then is not row for row what the plane holds."""
    monkeypatch.setattr(gpu_tokens, "_MANY", 0)
    own = GpuReading(mv.KvPlane(32, 2, 16), captured)
    other = HostReading(mv.KvPlane(32, 2, 16, backend="numpy"), last=False)
    for token in range(62):
        if token == 32:
            own.trim(mv.Ring(32, len=10, origin_physical=28))
            other.trim(mv.Ring(32, len=10, origin_physical=28))
        row = mx.array(mv.seeded(token, 1, 2, 1, 16))
        for a, b in zip(own.one(row, -row, "float32"), other.one(row, -row, "float32"), strict=True):
            assert np.array_equal(np.array(a), np.array(b)), token
