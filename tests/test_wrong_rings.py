"""Four rings that are wrong: the cases must catch each, and must pass the right one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from conftest import cases
from walk import walk_ring
from wrong_rings import LenIsPositionRing, ModuloRing, OverflowByOneRing, restore_at_row_0

import muser_viz as mv
from muser_viz.ring import Ring


def cases_hold(ring: type[Ring]) -> None:
    for case in cases("ring.json"):
        walk_ring(ring(case["capacity"]), case)


def rows_hold_after_a_restore_elsewhere(ring: type[Ring]) -> None:
    """From a full ring of 8 whose token 5 lies in row 2: the next token overwrites row 2."""
    restored = ring(8, len=8, origin_logical=5, origin_physical=2)
    assert [restored.append(position) for position in (13, 14)] == [2, 3]


def logits_replay(restore: Callable[[mv.PlaneSnapshot], mv.KvPlane]) -> None:
    plane = mv.KvPlane(64, 1, 8)
    plane.append_batch(0, mv.seeded(1, 100, 8), mv.seeded(2, 100, 8))
    query = mv.seeded(3, 4, 8)
    assert not mv.differing(mv.attend(restore(plane.snapshot()), query), mv.attend(plane, query)).any()


def test_the_right_ring_passes() -> None:
    cases_hold(Ring)
    rows_hold_after_a_restore_elsewhere(Ring)
    logits_replay(mv.KvPlane.restore)


def test_modulo_of_the_position_is_caught_after_a_restore_at_another_rotation() -> None:
    with pytest.raises(AssertionError):
        rows_hold_after_a_restore_elsewhere(ModuloRing)


def test_overflow_counted_as_one_is_caught() -> None:
    with pytest.raises(AssertionError):
        cases_hold(OverflowByOneRing)


def test_len_taken_for_the_position_is_caught() -> None:
    with pytest.raises((AssertionError, mv.CacheDiscontinuity, mv.NotLive)):
        cases_hold(LenIsPositionRing)


def test_restore_at_row_0_is_caught() -> None:
    with pytest.raises(AssertionError):
        logits_replay(restore_at_row_0)


def test_restore_at_row_0_still_finds_every_token() -> None:
    plane = mv.KvPlane(8, 1, 4)
    plane.append_batch(0, mv.seeded(1, 11, 4), mv.seeded(2, 11, 4))
    packed = restore_at_row_0(plane.snapshot())
    assert np.array_equal(packed.keys(), plane.keys())
