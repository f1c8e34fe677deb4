from __future__ import annotations

import numpy as np
import pytest

import muser_viz as mv
from muser_viz.paging import PagedPlane

K, V = mv.seeded(1, 300, 8), mv.seeded(2, 300, 8)


def filled(count: int, blocks: int, window: int | None, block: int = 4) -> PagedPlane:
    plane = PagedPlane(blocks, window, block, 2, 4)
    for token in range(count):
        plane.append(token, K[token], V[token])
    return plane


@pytest.mark.parametrize("count", [0, 1, 4, 15, 16, 17, 19, 20, 21, 40, 300])
@pytest.mark.parametrize("block", [1, 3, 4, 16])
def test_it_holds_what_the_ring_holds(count: int, block: int) -> None:
    plane, ring = filled(count, 16 // block + 2, 16, block), mv.KvPlane(16, 2, 4)
    ring.append_batch(0, K[:count], V[:count])
    assert np.array_equal(plane.keys(), ring.keys())
    assert np.array_equal(plane.values(), ring.values())
    assert plane.front == ring.origin_logical
    assert plane.evicted == plane.front // block
    assert plane.taken == -(-count // block)
    assert len(plane.table) == plane.taken - plane.evicted


def test_the_lesson_s_numbers_without_its_bytes() -> None:
    plane = PagedPlane(129, 2_048, 16, 1, 1)
    one = np.ones(1, np.float32)
    for token in range(5_000):
        plane.append(token, one, one)
    assert (plane.taken, plane.evicted, plane.most_held, len(plane.table)) == (313, 184, 129, 129)
    assert plane.table_nbytes == 516
    assert PagedPlane(129, 2_048).nbytes == 2_113_536


def test_nothing_leaves_without_a_window() -> None:
    plane = filled(50, 13, None)
    assert (plane.evicted, plane.taken, plane.front) == (0, 13, 0)
    assert plane.held_nbytes == plane.nbytes == 13 * 4 * 2 * 8 * 2
    assert plane.live_rows().tolist() == list(range(50))


def test_a_pool_that_is_too_small_refuses_and_changes_nothing() -> None:
    plane = filled(16, 4, 16)
    before = plane.keys().tobytes(), dict(plane.table), plane.evicted
    with pytest.raises(mv.ContextExhausted, match="token 16 needs a block and all 4 are held"):
        plane.append(16, K[16], V[16])
    assert before == (plane.keys().tobytes(), dict(plane.table), plane.evicted)
    assert plane.next_position == 16


def test_what_is_refused() -> None:
    plane = filled(20, 5, 16)
    for position in (19, 21):
        with pytest.raises(mv.CacheDiscontinuity):
            plane.append(position, K[0], V[0])
    for token in (3, 20):
        with pytest.raises(mv.NotLive, match=f"token {token} was asked for"):
            plane.row(token)
    with pytest.raises(mv.NotLive):
        PagedPlane(1).row(0)
    with pytest.raises(mv.InputError, match=r"^key is float64"):
        plane.append(20, K[0].astype(float), V[0])
    with pytest.raises(mv.InputError, match=r"^blocks is 0"):
        PagedPlane(0)
    assert plane.next_position == 20
