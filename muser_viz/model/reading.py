"""What the model's attention is handed: a plane's rows as MLX arrays, by the rows kernels (§15.6, §15.9)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import mlx.core as mx

from muser_viz.devices.protocol import Kind
from muser_viz.launches import Handed
from muser_viz.layout import Index
from muser_viz.plane import KvPlane
from muser_viz.ring import Reservation, Ring, spans

Pair = tuple[Any, Any]
STEP = 256
"""Rows that arrays for one token's query are made of a multiple of, as mlx-lm grows its caches.

MLX on CUDA takes another attention kernel where it sees a slice of such an array, so
bits can be mlx-lm's only where the arrays have mlx-lm's shape.
"""
KINDS: dict[Any, Kind] = {mx.float32: "float32", mx.float16: "float16", mx.bfloat16: "bfloat16"}


State = tuple[int, int, int, int]
"""A ring's: capacity, len, both origins."""


class NextToken(NamedTuple):
    """What a plane's state says of its next token."""

    ring: Ring
    """The state after it."""
    row: int
    live: Handed


class NextChunk(NamedTuple):
    """What a plane's state says of its next chunk."""

    ring: Ring
    """The state after it."""
    reserved: Reservation
    handed: Handed


def next_token(ring: Ring) -> NextToken:
    """For a plane in this state."""
    ring = ring.copy()
    row = ring.append(ring.next_position)
    if ring.len == ring.capacity:
        return NextToken(ring, row, _every_row(ring.capacity))
    room = min(ring.capacity, -(-ring.len // STEP) * STEP)
    return NextToken(ring, row, Handed(live_places(ring), room=room))


@lru_cache(maxsize=64)
def _every_row(capacity: int) -> Handed:
    return Handed((slice(0, capacity),))


@lru_cache(maxsize=64)
def next_chunk(state: State, count: int, staged: bool) -> NextChunk:
    """The same for ``count`` tokens. ``staged``: the earlier rows that their queries see, then the chunk."""
    ring = ring_of(state)
    seen = Handed(seen_places(ring), count)
    reserved = ring.append_batch(ring.next_position, count)
    return NextChunk(ring, reserved, seen if staged else Handed(live_places(ring)))


def ring_of(state: State) -> Ring:
    """A ring in a state."""
    capacity, length, origin_logical, origin_physical = state
    return Ring(capacity, len=length, origin_logical=origin_logical, origin_physical=origin_physical)


class Reading(Protocol):
    """Stores a model's K and V in one plane, and hands rows back: one token, a chunk, or what is live.

    ``keys`` and ``values`` are ``(1, n_kv_heads, n, head_dim)`` of a ``kind``, and so are
    the rows that are handed back: live ones in ascending physical order. For a staged
    chunk, the earlier rows that its queries see, and the chunk, in temporal order.
    """

    def again(self, keys: Any, values: Any) -> Pair | None:
        """Store one token more where it was prepared; None, and nothing was stored, where it was not."""

    def one(self, keys: Any, values: Any, kind: Kind) -> Pair:
        """Store one token; the live rows."""

    def chunk(self, keys: Any, values: Any, kind: Kind, staged: bool) -> Pair:
        """Store a chunk; the live rows, or what was staged."""

    def live(self, kind: Kind) -> Pair:
        """The live rows."""

    def trim(self, ring: Ring) -> None:
        """Take a state with fewer live rows; the rows stay as they are."""

    @property
    def offset(self) -> Any:
        """The next position, as RoPE takes it."""

    @property
    def arrays(self) -> list[Any]:
        """The MLX arrays that hold what was stored so far."""

    @property
    def copy_nbytes(self) -> int:
        """Bytes of a copy of the rows, where one is kept."""


stamp: Callable[[KvPlane], object] = attrgetter("_ring")
"""The Ring that a plane holds now: whoever held the last one can tell that the state is another.

On a host it is another after every store, reset, undo or trim. On a GPU planes in one
state share one: there it says which state, not which rows.
"""


def rows(heads: Any) -> Any:
    """``(1, n_kv_heads, n, head_dim)`` as ``(n, kv_dim)``, what a store kernel takes."""
    _, n_heads, count, dim = heads.shape
    return heads.transpose(0, 2, 1, 3).reshape(count, n_heads * dim)


def without_room(key: Any, value: Any, cut: Index | None) -> Pair:
    """The arrays without the zeros at their end, where ``cut`` takes some off."""
    return (key, value) if cut is None else (key[cut], value[cut])


def live_places(ring: Ring) -> tuple[slice, ...]:
    """The live rows in ascending physical order, as one slice or two with a gap between."""
    if ring.len == ring.capacity:
        return (slice(0, ring.capacity),)
    return ring.live_spans()[::-1]


def seen_places(ring: Ring) -> tuple[slice, ...]:
    """The rows that the first query of a chunk sees, oldest first: up to ``capacity - 1``."""
    seen = min(ring.len, ring.capacity - 1)
    first = ring.physical(ring.next_position - seen) if seen else 0
    return spans(first, seen, ring.capacity)
