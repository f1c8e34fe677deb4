"""What a plane's state says of the rows that a model is handed."""

from __future__ import annotations

import numpy as np
import pytest

import muser_viz as mv
from muser_viz.model.reading import live_places, next_chunk, next_token, ring_of, seen_places

RINGS = [
    mv.Ring(8),
    mv.Ring(8, len=5),
    mv.Ring(8, len=5, origin_physical=2),
    mv.Ring(8, len=5, origin_physical=6),
    mv.Ring(8, len=8, origin_physical=3),
    mv.Ring(8, len=8, origin_logical=70, origin_physical=3),
]


def rows(places: tuple[slice, ...]) -> list[int]:
    """The rows, one after another."""
    return [row for place in places for row in range(place.start, place.stop)]


@pytest.mark.parametrize("ring", RINGS, ids=repr)
def test_live_rows_are_in_physical_order_and_seen_ones_in_temporal_order(ring: mv.Ring) -> None:
    assert rows(live_places(ring)) == np.flatnonzero(ring.occupants() >= 0).tolist()
    seen = range(ring.next_position - min(ring.len, 7), ring.next_position)
    assert rows(seen_places(ring)) == [ring.physical(position) for position in seen]


@pytest.mark.parametrize("ring", RINGS, ids=repr)
def test_the_next_token_and_the_next_chunk(ring: mv.Ring) -> None:
    before = ring.state
    after, row, live = next_token(ring)
    assert ring.state == before
    assert after.next_position == ring.next_position + 1
    assert row == after.physical(ring.next_position)
    assert rows(live.places) == rows(live_places(after))
    assert live.filled == 8
    for staged in (False, True):
        chunk = next_chunk(before, 3, staged)
        assert chunk.ring.next_position == ring.next_position + 3
        assert rows(chunk.handed.places) == rows(seen_places(ring) if staged else live_places(chunk.ring))
        assert chunk.handed.chunk == (3 if staged else 0)
        assert chunk.reserved.source_count == 3
    assert ring_of(before) == ring
