"""What the model's attention is handed: a plane's rows as MLX arrays, by the rows kernels (§15.6, §15.9)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import mlx.core as mx

from muser_viz import launches
from muser_viz.checks import POSITION_LIMIT
from muser_viz.devices.protocol import Buffer, Kind, Launcher
from muser_viz.errors import InputError
from muser_viz.launches import Handed
from muser_viz.plane import KvPlane
from muser_viz.ring import Ring, spans

Pair = tuple[Any, Any]
STEP = 256
"""Rows that arrays for one token's query are made of a multiple of, as mlx-lm grows its caches.

MLX on CUDA takes another attention kernel where it sees a slice of such an array, so
bits can be mlx-lm's only where the arrays have mlx-lm's shape.
"""
KINDS: dict[Any, Kind] = {mx.float32: "float32", mx.float16: "float16", mx.bfloat16: "bfloat16"}


class NextToken(NamedTuple):
    """What a plane's state says of its next token."""

    ring: Ring
    """The state after it."""
    row: int
    live: Handed


@lru_cache(maxsize=64)
def next_token(capacity: int, length: int, origin_logical: int, origin_physical: int) -> NextToken:
    """For a plane in this state; planes in one state share it, as a model's rings are."""
    ring = Ring(capacity, len=length, origin_logical=origin_logical, origin_physical=origin_physical)
    row = ring.append(ring.next_position)
    room = min(capacity, -(-ring.len // STEP) * STEP)
    return NextToken(ring, row, Handed(live_places(ring), room=room))


class Reading:
    """Stores a model's K and V in one plane, and hands rows back: one token, a chunk, or what is live.

    ``keys`` and ``values`` are ``(1, n_kv_heads, n, head_dim)`` of a ``kind``, and so are
    the rows that are handed back.
    """

    def __init__(self, plane: KvPlane) -> None:
        self.plane = plane

    @property
    def _launcher(self) -> Launcher:
        return self.plane.device

    @property
    def _buffers(self) -> tuple[Buffer, Buffer]:
        return self.plane.key_cache, self.plane.value_cache

    @property
    def arrays(self) -> list[Any]:
        """The MLX arrays that hold what was stored so far."""
        raise NotImplementedError

    @property
    def copy_nbytes(self) -> int:
        """Bytes of a copy of the rows, where one is kept."""
        return 0

    def one(self, keys: Any, values: Any, kind: Kind) -> Pair:
        """Store one token; the live rows in ascending physical order."""
        raise NotImplementedError

    def chunk(self, keys: Any, values: Any, kind: Kind, staged: bool) -> Pair:
        """Store a chunk. ``staged``: the earlier rows that its queries see, and the chunk, in temporal order.

        Otherwise the live rows in ascending physical order.
        """
        plane, count = self.plane, int(keys.shape[2])
        if count * plane.kv_dim >= POSITION_LIMIT:
            raise InputError(f"a chunk of {count} rows has 2**32 elements or more: split it")
        ring = plane.ring
        reserved = ring.append_batch(ring.next_position, count)
        given = self._given((rows(keys), rows(values)))

        def store() -> None:
            launches.store_batch(self._launcher, *given, *self._buffers, plane.layout, reserved, kind)
            plane.advance(ring)

        if staged:
            handed = self._hand(given, Handed(seen_places(plane.ring), count), kind)
            store()
            return handed
        store()
        return self._hand(given, Handed(live_places(ring)), kind)

    def live(self, kind: Kind) -> Pair:
        """The live rows in ascending physical order."""
        nothing = mx.zeros((8,), getattr(mx, kind))
        return self._hand(self._given((nothing, nothing)), Handed(live_places(self.plane.ring)), kind)

    def _hand(self, chunk: Pair, wanted: Handed, kind: Kind) -> Pair:
        made = launches.rows(self._launcher, chunk, self._buffers, self.plane.layout, wanted, None, kind)
        return self._taken(made, kind, wanted)

    def _given(self, arrays: Pair) -> Pair:
        """MLX's arrays as the device takes them."""
        raise NotImplementedError

    def _taken(self, made: list[Any], kind: Kind, handed: Handed) -> Pair:
        """What a launch made, as MLX arrays of ``kind``, without the zeros at their end."""
        raise NotImplementedError

    def trim(self, ring: Ring) -> None:
        """Take a state with fewer live rows; the rows stay as they are."""
        self.plane.advance(ring)


def stamp(plane: KvPlane) -> object:
    """An object that is another after every store, reset, undo or trim of the plane.

    A plane takes its new state as a new Ring; whoever holds the old one can tell.
    """
    return plane._ring


def rows(heads: Any) -> Any:
    """``(1, n_kv_heads, n, head_dim)`` as ``(n, kv_dim)``, what a store kernel takes."""
    _, n_heads, count, dim = heads.shape
    return heads.transpose(0, 2, 1, 3).reshape(count, n_heads * dim)


def without_room(key: Any, value: Any, handed: Handed) -> Pair:
    """The arrays without the zeros at their end."""
    if handed.count == handed.filled:
        return key, value
    return key[:, :, : handed.count], value[:, :, : handed.count]


def live_places(ring: Ring) -> tuple[slice, ...]:
    """The live rows in ascending physical order, as one slice or two with a gap between."""
    if ring.len == ring.capacity:
        return (slice(0, ring.capacity),)
    return tuple(sorted(ring.live_spans(), key=lambda place: place.start))


def seen_places(ring: Ring) -> tuple[slice, ...]:
    """The rows that the first query of a chunk sees, oldest first: up to ``capacity - 1``."""
    seen = min(ring.len, ring.capacity - 1)
    first = ring.physical(ring.next_position - seen) if seen else 0
    return spans(first, seen, ring.capacity)
