from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muser_viz as mv
from muser_viz.pictures import Picture
from muser_viz.staging import staging_sentence

GATE = (1, 31, 32, 33, 2047, 2048, 2049)


def by_stepping(position: int, count: int, capacity: int) -> list[int]:
    """Rows lost by query, from a ring that is filled and asked who lives in it."""
    ring = mv.Ring(capacity)
    ring.append_batch(0, position)
    ring.append_batch(position, count)
    held = set(ring.occupants().tolist())
    return [
        len(set(range(max(0, p - capacity + 1), p + 1)) - held) for p in range(position, position + count)
    ]


@given(st.integers(0, 40), st.integers(1, 30), st.integers(1, 12))
def test_rows_lost_is_what_stepping_finds(position: int, count: int, capacity: int) -> None:
    lost = mv.rows_lost(position, count, capacity)
    assert lost.dtype == np.int64
    assert lost.tolist() == by_stepping(position, count, capacity)


@given(st.integers(0, 40), st.integers(1, 30), st.integers(1, 12))
def test_the_span_is_the_union_of_the_windows(position: int, count: int, capacity: int) -> None:
    seen = {t for p in range(position, position + count) for t in range(max(0, p - capacity + 1), p + 1)}
    span = mv.staged_span(position, count, capacity)
    assert set(span) == seen
    assert len(span) == min(position, capacity - 1) + count


def test_the_figures_of_the_chapter() -> None:
    assert mv.rows_lost(2048, 512).tolist() == list(range(511, -1, -1))
    assert mv.rows_lost(1800, 512).tolist() == [264] * 248 + list(range(263, -1, -1))
    assert mv.staged_span(2048, 512) == range(1, 2560)
    assert len(mv.staged_span(2048, 512)) == 2559
    assert not any(mv.rows_lost(p, 1).any() for p in range(0, 5000, 7))
    assert not mv.rows_lost(1536, 512).any()


@pytest.mark.parametrize(("position", "count"), [(0, 0), (-1, 3), (0, -2), (0.5, 3), (1 << 32, 1)])
def test_no_chunk(position: int, count: int) -> None:
    for asked in (mv.staged_span, mv.rows_lost, mv.draw_staging):
        with pytest.raises(mv.InputError):
            asked(position, count, 8)


@pytest.mark.parametrize("rotation", [None, 0, 3])
@pytest.mark.parametrize("filled", [0, 1, 5, 8, 9, 21])
@pytest.mark.parametrize("count", [1, 3, 8, 11])
def test_every_query_finds_its_rows(filled: int, count: int, rotation: int | None) -> None:
    plane = mv.KvPlane(8, 2, 4)
    keys, values = mv.seeded(1, 40, 8), mv.seeded(2, 40, 8)
    plane.append_batch(0, keys[:filled], values[:filled])
    if rotation is not None:
        plane = mv.KvPlane.restore(plane.snapshot(), rotation)
    before = plane.ring, plane.raw_key().tobytes(), plane.raw_value().tobytes()
    chunk = slice(filled, filled + count)
    staged = mv.stage(plane, filled, keys[chunk], values[chunk])
    assert (plane.ring, plane.raw_key().tobytes(), plane.raw_value().tobytes()) == before
    assert staged.tokens == mv.staged_span(filled, count, 8)
    for p in range(filled, filled + count):
        plane.append(p, keys[p], values[p])
        for turned in (0, plane.origin_physical):
            window = staged.window(p, turned)
            assert window.origin_physical == turned
            assert window.next_position == plane.next_position
            assert not mv.differing(window.keys(), plane.keys()).any()
            assert not mv.differing(window.values(), plane.values()).any()


def test_refusals() -> None:
    plane = mv.KvPlane(8, 2, 4)
    rows = mv.seeded(1, 3, 8)
    staged = mv.stage(plane, 0, rows, rows)
    with pytest.raises(mv.NotLive, match="queries 0 to 2"):
        staged.window(3)
    with pytest.raises(mv.InputError):
        staged.window(1, 8)
    with pytest.raises(mv.CacheDiscontinuity):
        mv.stage(plane, 1, rows, rows)
    for keys in (rows[:0], rows[:, :3], rows.astype(np.float64)):
        with pytest.raises(mv.InputError):
            mv.stage(plane, 0, keys, keys)


@pytest.mark.parametrize("filled", [1, 5, 8, 9, 21])
def test_from_the_front_has_the_bits_of_a_restore_at_row_0(filled: int) -> None:
    plane = mv.KvPlane(8, 2, 4)
    plane.append_batch(0, mv.seeded(1, filled, 8), mv.seeded(2, filled, 8))
    query = mv.seeded(3, 4, 4)
    wanted = mv.attend(mv.KvPlane.restore(plane.snapshot(), 0), query)
    for rotation in range(8):
        turned = mv.KvPlane.restore(plane.snapshot(), rotation)
        assert not mv.differing(mv.attend_from_front(turned, query), wanted).any()


def test_the_gate() -> None:
    keys, values = mv.seeded(1, 2050, 256), mv.seeded(2, 2050, 256)
    query = mv.seeded(3, 8, 128) * np.float32(0.25)
    plane = mv.KvPlane(2048)
    found = {}
    for p in GATE:
        done = plane.next_position
        plane.append_batch(done, keys[done:p], values[done:p])
        staged = mv.stage(plane, p, keys[p : p + 1], values[p : p + 1])
        plane.append(p, keys[p], values[p])
        wanted = mv.attend(staged.window(p), query)
        found[p] = bool(mv.differing(mv.attend(plane, query), wanted).any())
        assert not mv.differing(mv.attend_from_front(plane, query), wanted).any()
        turned = mv.attend(staged.window(p, plane.origin_physical), query)
        assert not mv.differing(mv.attend(plane, query), turned).any()
    assert [p for p in GATE if found[p]] == [2048, 2049]


def test_the_picture() -> None:
    picture = mv.draw_staging(2048, 512)
    assert isinstance(picture, Picture)
    assert picture.png.startswith(b"\x89PNG\r\n\x1a\n")
    assert picture.text.splitlines() == [
        "A chunk of 512 tokens at 2,048, a ring of 2,048 rows",
        "ring before: tokens 0 to 2,047: 2,048 rows",
        "chunk: tokens 2,048 to 2,559: 512 rows",
        "ring after: tokens 512 to 2,559: 2,048 rows",
        "query 2,048 sees: tokens 1 to 2,048: 2,048 rows",
        "query 2,559 sees: tokens 512 to 2,559: 2,048 rows",
        "staged: tokens 1 to 2,559: 2,559 rows",
        "rows lost: 511 to query 2,048, 0 to query 2,559, 0 once staged",
        "stored first: query 2,048 sees tokens 1 to 2,048, 2,048 rows, and 511 of them are lost "
        "(tokens 1 to 511); 130,816 over all 512 queries; "
        "to lose none, stage 2,559 rows, tokens 1 to 2,559",
    ]
    assert "ring before: empty" in mv.draw_staging(0, 5, 8).text
    assert "rows lost: 8 to query 8, 0 to query 18" in mv.draw_staging(8, 11, 8).text
    assert "query 2,048 sees: tokens 1 to 2,048" in mv.draw_staging(2048, 1).text
    assert mv.draw_staging(6, 4, 8, 2, True).text.splitlines()[-1] == staging_sentence(6, 4, 8, 2, True)


@given(st.integers(0, 40), st.integers(1, 30), st.integers(1, 12), st.data())
def test_the_sentence_says_what_is_lost_and_what_is_staged(
    position: int, count: int, capacity: int, data: st.DataObject
) -> None:
    query = data.draw(st.integers(0, count - 1))
    at, lost = position + query, mv.rows_lost(position, count, capacity)
    first = max(0, at - capacity + 1)
    said = staging_sentence(position, count, capacity, query)
    seen = f"tokens {first} to {at}, {at - first + 1} rows" if first < at else f"token {at}, 1 row"
    assert f"query {at} sees {seen}, and {lost[query]} of them" in said
    assert f"{lost.sum()} over all {count} queries" in said
    staged = mv.staged_span(position, count, capacity)
    said = staging_sentence(position, count, capacity, query, True)
    rows = (
        f"{len(staged)} rows, tokens {staged[0]} to {staged[-1]}" if len(staged) > 1 else f"1 row, token {at}"
    )
    assert said.startswith(f"staged ({rows})")
    assert f"staged rows {staged.index(first)} to {staged.index(at)}; nothing is lost" in said


@pytest.mark.parametrize("query", [-1, 4, 0.5])
def test_no_query_of_the_chunk(query: Any) -> None:
    for asked in (staging_sentence, mv.draw_staging):
        with pytest.raises(mv.InputError, match="query is"):
            asked(6, 4, 8, query)
