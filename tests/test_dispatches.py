from __future__ import annotations

import numpy as np
import pytest

import muser_viz as mv
from muser_viz.dispatches import fused_read, orders, seen

K, V = mv.seeded(1, 60, 16), mv.seeded(2, 60, 16)
QUERY = mv.seeded(3, 4, 8)


def ring(tokens: int = 50) -> mv.KvPlane:
    plane = mv.KvPlane(32, 2, 8)
    plane.append_batch(0, K[:tokens], V[:tokens])
    return plane


def after(tokens: int = 50) -> mv.KvPlane:
    plane = ring(tokens)
    plane.append(tokens, K[tokens], V[tokens])
    return plane


def test_orders() -> None:
    assert list(orders("ab", "c")) == [("a", "b", "c"), ("b", "a", "c")]
    assert len(list(orders("abc"))) == 6


@pytest.mark.parametrize("tokens", [0, 20, 31, 32, 50])
def test_with_a_fence_there_is_one_outcome(tokens: int) -> None:
    plane = ring(tokens)
    before = plane.ring, plane.raw_key().tobytes(), plane.raw_value().tobytes()
    wanted = mv.attend(after(tokens), QUERY)
    for each in seen(plane, K[tokens], V[tokens], QUERY, fence=True):
        assert each.stored == (0, 1)
        assert not mv.differing(each.read, wanted).any()
    assert before == (plane.ring, plane.raw_key().tobytes(), plane.raw_value().tobytes())


def test_without_one_a_head_reads_what_its_own_part_of_the_row_holds() -> None:
    found = seen(ring(), K[50], V[50], QUERY, fence=False)
    assert len(found) == 6
    assert {each.stored for each in found} == {(), (0,), (1,), (0, 1)}
    wanted = mv.attend(after(), QUERY)
    stale = mv.KvPlane.restore(ring().snapshot())
    late = mv.attend(stale, QUERY)  # the same 32 rows, the oldest still in place
    for each in found:
        for head in range(4):
            expected = wanted if head // 2 in each.stored else late
            assert not mv.differing(each.read[head], expected[head]).any()


def test_before_the_first_wrap_a_late_store_leaves_a_zero_row() -> None:
    zero = ring(20)
    zero.append(20, np.zeros(16, np.float32), np.zeros(16, np.float32))
    late = next(e for e in seen(ring(20), K[20], V[20], QUERY, fence=False) if not e.stored)
    assert not mv.differing(late.read, mv.attend(zero, QUERY)).any()


@pytest.mark.parametrize("tokens", [32, 50])
def test_fused_is_store_fence_read(tokens: int) -> None:
    plane, done = ring(tokens), after(tokens)
    keys, values, state = plane.raw_key(), plane.raw_value(), plane.ring
    read = fused_read(keys, values, state, K[tokens], V[tokens], QUERY)
    assert not mv.differing(read, mv.attend(done, QUERY)).any()
    assert not mv.differing(keys, done.raw_key()).any()
    assert not mv.differing(values, done.raw_value()).any()
    assert state == done.ring


def test_what_is_refused() -> None:
    with pytest.raises(mv.InputError, match="head-major"):
        seen(mv.KvPlane(8, 2, 8, head_major=True), K[0], V[0], QUERY, fence=True)
    with pytest.raises(mv.InputError, match="3 heads"):
        seen(ring(), K[50], V[50], QUERY[:3], fence=True)
    with pytest.raises(mv.InputError, match=r"^key is float64"):
        seen(ring(), K[50].astype(float), V[50], QUERY, fence=True)
    plane = ring(20)
    with pytest.raises(mv.InputError, match=r"^ring.len is 20"):
        fused_read(plane.raw_key(), plane.raw_value(), plane.ring, K[20], V[20], QUERY)
    plane = ring()
    with pytest.raises(mv.InputError, match=r"^value_cache is float16 of shape"):
        fused_read(plane.raw_key(), plane.raw_value()[:4], plane.ring, K[50], V[50], QUERY)
