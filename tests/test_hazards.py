from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import muser_viz as mv
from muser_viz.hazards import POISON

K, V = mv.seeded(1, 40, 8), mv.seeded(2, 40, 8)
QUERY = mv.seeded(3, 4, 4)
LAYOUTS = pytest.mark.parametrize("head_major", [False, True])


def filled(kind: type[mv.KvPlane], count: int, head_major: bool = False, backend: str | None = None) -> Any:
    plane = kind(8, 2, 4, head_major, backend)
    plane.append_batch(0, K[:count], V[:count])
    return plane


def same_bytes(a: mv.KvPlane, b: mv.KvPlane) -> bool:
    return (
        a.raw_key().tobytes() == b.raw_key().tobytes() and a.raw_value().tobytes() == b.raw_value().tobytes()
    )


def rows_of(plane: mv.KvPlane) -> list[int]:
    """The token whose K and V each row holds."""
    by_row = [
        raw.transpose(1, 0, 2).reshape(8, 8) if plane.head_major else raw
        for raw in (plane.raw_key(), plane.raw_value())
    ]
    whole = np.concatenate(by_row, axis=1)
    tokens = np.concatenate([K, V], axis=1).astype(np.float16)
    return [int(np.flatnonzero((tokens == row).all(axis=1))[0]) for row in whole]


@LAYOUTS
def test_a_modulo_agrees_with_the_origins_from_an_empty_ring(backend: str, head_major: bool) -> None:
    right, wrong = (filled(kind, 13, head_major, backend) for kind in (mv.KvPlane, mv.ModuloPlane))
    for token in range(13, 30):
        assert right.append(token, K[token], V[token]) == wrong.append(token, K[token], V[token])
    assert same_bytes(right, wrong)
    assert right.ring == wrong.ring


@LAYOUTS
def test_a_modulo_after_a_restore_at_another_rotation(backend: str, head_major: bool) -> None:
    snapshot = filled(mv.KvPlane, 13, head_major, backend).snapshot()
    right, wrong = (kind.restore(snapshot, 0, backend) for kind in (mv.KvPlane, mv.ModuloPlane))
    assert same_bytes(right, wrong)
    assert (right.append(13, K[13], V[13]), wrong.append(13, K[13], V[13])) == (0, 5)
    assert rows_of(right) == right.occupants().tolist() == [13, 6, 7, 8, 9, 10, 11, 12]
    assert rows_of(wrong) == [5, 6, 7, 8, 9, 13, 11, 12]
    assert wrong.ring == right.ring
    wrong.append_batch(14, K[14:21], V[14:21])
    assert rows_of(wrong) == [16, 17, 18, 19, 20, 13, 14, 15]


def test_a_modulo_plane_refuses_as_any_plane() -> None:
    plane = filled(mv.ModuloPlane, 5)
    before = plane.raw_key().tobytes(), plane.ring
    with pytest.raises(mv.CacheDiscontinuity):
        plane.append(6, K[6], V[6])
    with pytest.raises(mv.InputError):
        plane.append(5, K[5, :3], V[5])
    assert (plane.raw_key().tobytes(), plane.ring) == before


@LAYOUTS
@pytest.mark.parametrize("count", [0, 5, 8, 13])
def test_poison_lies_where_nothing_was_written(backend: str, head_major: bool, count: int) -> None:
    zeroed, unfilled = (filled(kind, count, head_major, backend) for kind in (mv.KvPlane, mv.UnfilledPlane))
    assert np.array_equal(zeroed.keys(), unfilled.keys())
    for a, b in ((zeroed.raw_key(), unfilled.raw_key()), (zeroed.raw_value(), unfilled.raw_value())):
        unwritten = b.view(np.uint16) == POISON
        assert unwritten.sum() == (8 - min(count, 8)) * 8
        assert not a[unwritten].view(np.uint16).any()
        assert np.array_equal(a[~unwritten], b[~unwritten])


@LAYOUTS
@pytest.mark.parametrize(("count", "rotation"), [(5, None), (5, 6), (8, None), (13, None), (13, 0)])
def test_an_unfilled_restore(backend: str, head_major: bool, count: int, rotation: int | None) -> None:
    snapshot = filled(mv.KvPlane, count, head_major, backend).snapshot()
    zeroed, unfilled = (kind.restore(snapshot, rotation, backend) for kind in (mv.KvPlane, mv.UnfilledPlane))
    assert zeroed.ring == unfilled.ring
    assert np.array_equal(zeroed.keys(), unfilled.keys())
    assert np.array_equal(zeroed.values(), unfilled.values())
    assert (unfilled.raw_key().view(np.uint16) == POISON).sum() == max(0, 8 - count) * 8
    assert same_bytes(zeroed, unfilled) == (count >= 8)


def test_an_unfilled_reset_leaves_the_bytes() -> None:
    plane = filled(mv.UnfilledPlane, 8)
    before = plane.raw_key().tobytes()
    plane.reset()
    assert (plane.len, plane.next_position) == (0, 0)
    assert plane.raw_key().tobytes() == before


@LAYOUTS
def test_a_reader_to_capacity_of_a_full_plane_reads_what_attention_reads(head_major: bool) -> None:
    plane = filled(mv.KvPlane, 13, head_major)
    for masked in (False, True):
        read = mv.read_to_capacity(plane, QUERY, masked)
        assert read.dtype == np.float64
        assert np.allclose(read, mv.attend(plane, QUERY), atol=1e-6)


@LAYOUTS
def test_only_a_masked_reader_is_right_on_a_part_of_a_zeroed_plane(head_major: bool) -> None:
    plane = filled(mv.KvPlane, 5, head_major)
    assert np.allclose(mv.read_to_capacity(plane, QUERY, masked=True), mv.attend(plane, QUERY), atol=1e-6)
    assert not np.allclose(mv.read_to_capacity(plane, QUERY), mv.attend(plane, QUERY), atol=1e-2)


def test_no_reader_to_capacity_is_right_on_poison() -> None:
    plane = filled(mv.UnfilledPlane, 5)
    for masked in (False, True):
        assert np.isnan(mv.read_to_capacity(plane, QUERY, masked)).all()


def test_zero_rows_take_their_share() -> None:
    plane = mv.KvPlane(8, 1, 4)
    plane.append_batch(0, mv.seeded(1, 2, 4), np.ones((2, 4), np.float32))
    assert (mv.read_to_capacity(plane, np.zeros((1, 4), np.float32)) == 0.25).all()


def test_what_cannot_be_read_to_capacity() -> None:
    plane = mv.KvPlane(8, 2, 4)
    assert not mv.read_to_capacity(plane, QUERY).any()
    with pytest.raises(mv.NotLive, match="no token"):
        mv.read_to_capacity(plane, QUERY, masked=True)
    for query in (QUERY[:3], QUERY[:0], QUERY[:, :2], QUERY.astype(np.float64)):
        with pytest.raises(mv.InputError):
            mv.read_to_capacity(plane, query)
    with pytest.raises(mv.InputError, match=r"^masked is 3; give True or False$"):
        mv.read_to_capacity(plane, QUERY, 3)  # type: ignore[arg-type]
