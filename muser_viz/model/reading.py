"""What the model's attention is handed: a plane's live rows as MLX arrays (§15.6, §15.9)."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import mlx.core as mx

from muser_viz.layout import Layout
from muser_viz.plane import KvPlane, Undo
from muser_viz.ring import Ring, spans
from muser_viz.store import Step

Reading = Literal["plane", "copy"]
Pair = tuple[Any, Any]


class Reader(Protocol):
    """Stores a model's K and V in one plane, and hands its live rows back."""

    reading: Reading

    def store(self, keys: Any, values: Any, layer: int, step: Step | None) -> None:
        """Let a store kernel write the rows of ``(1, n_kv_heads, n, head_dim)``."""

    def store_staged(self, keys: Any, values: Any, layer: int, step: Step | None) -> Pair:
        """``store``; the earlier rows that the chunk's queries see, and the chunk, in temporal order."""

    def live(self, kind: Any) -> Pair:
        """The live rows in ascending physical order: ``(1, n_kv_heads, len, head_dim)`` of type ``kind``."""

    def trim(self, ring: Ring) -> None:
        """Take a state with fewer live rows; the rows stay as they are."""

    @property
    def arrays(self) -> list[Any]:
        """The MLX arrays held between calls."""

    @property
    def copy_nbytes(self) -> int:
        """Bytes of a copy of the rows, where one is kept."""


def rows32(heads: Any) -> Any:
    """``(1, n_kv_heads, n, head_dim)`` of any float as f32 ``(n, kv_dim)``: what a store kernel takes."""
    _, n_heads, count, dim = heads.shape
    if count == 1:
        return heads.reshape(1, n_heads * dim).astype(mx.float32)
    return heads.transpose(0, 2, 1, 3).reshape(count, n_heads * dim).astype(mx.float32)


def by_head(rows: Any, layout: Layout) -> Any:
    """Rows in a plane's layout, of MLX or NumPy, as ``(n_kv_heads, n, head_dim)``: a view."""
    if layout.head_major:
        return rows
    return rows.reshape(-1, layout.n_kv_heads, layout.head_dim).transpose(1, 0, 2)


def move(plane: KvPlane, ring: Ring) -> None:
    """Give a plane another state; its rows stay as they are."""
    plane.undo(Undo(ring, ()))


def stamp(plane: KvPlane) -> object:
    """An object that is another after every store, reset, undo or trim of the plane.

    A plane takes its new state as a new Ring; whoever holds the old one can tell.
    """
    return plane._ring


def live_places(plane: KvPlane) -> list[slice]:
    """The live rows in ascending physical order, as one slice or two with a gap between."""
    if plane.len == plane.capacity:
        return [slice(0, plane.capacity)]
    places = sorted(plane.ring.live_spans(), key=lambda place: place.start)
    if len(places) == 2 and places[0].stop == places[1].start:
        return [slice(places[0].start, places[1].stop)]
    return places


def seen_places(plane: KvPlane) -> tuple[slice, ...]:
    """The rows that the first query of a chunk sees, oldest first: up to ``capacity - 1``."""
    seen = min(plane.len, plane.capacity - 1)
    first = plane.physical(plane.next_position - seen) if seen else 0
    return spans(first, seen, plane.capacity)


def in_one(parts: list[Any], axis: int) -> Any:
    """The parts joined, where there are several."""
    return parts[0] if len(parts) == 1 else mx.concatenate(parts, axis=axis)
