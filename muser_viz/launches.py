"""One function a kernel: its buffer table filled from a layout and a ring (§15.4, §15.6)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz.devices.protocol import Buffer, Device, Fresh, Kind
from muser_viz.errors import KernelError
from muser_viz.layout import Index, Layout
from muser_viz.ring import Reservation, Ring

GROUP = 16
"""Dims that one thread of the mix kernel sums."""
ROWS = 8
"""Rows of which one thread of a rows kernel hands an element over."""


def store(
    device: Device, key: Any, value: Any, key_cache: Buffer, value_cache: Buffer, kv_dim: int, row: int
) -> None:
    """One token-major row: ``muser_kv_store_f16``."""
    device.launch("muser_kv_store_f16", kv_dim, [key, value, key_cache, value_cache, kv_dim, row])


def told_batch(layout: Layout, reserved: Reservation) -> tuple[int, ...]:
    """The scalars of ``muser_kv_store_batch_f16``."""
    return (
        layout.kv_dim,
        reserved.source_first,
        reserved.source_count,
        reserved.start_position,
        layout.capacity,
        reserved.origin_logical,
        reserved.origin_physical,
        layout.head_dim,
        int(layout.head_major),
    )


def store_batch(
    device: Device,
    keys: Any,
    values: Any,
    key_cache: Buffer,
    value_cache: Buffer,
    layout: Layout,
    reserved: Reservation,
    kind: Kind = "float32",
) -> None:
    """The live rows of a chunk, either layout: ``muser_kv_store_batch_f16``."""
    if reserved.source_count == 0:
        return
    arguments = [keys, values, key_cache, value_cache, *told_batch(layout, reserved)]
    device.launch("muser_kv_store_batch_f16", reserved.source_count * layout.kv_dim, arguments, kind)


@dataclass(frozen=True)
class Handed:
    """Rows for a model: physical ones in this order, then those of a chunk, and where they go (§15.10).

    ``places``: up to two slices. They go to row ``out_first`` and on of arrays that have
    ``out_rows`` rows a head; None: arrays are made for them, which end with zeros where
    ``room`` asks for more rows.
    """

    places: tuple[slice, ...]
    chunk: int = 0
    out_first: int = 0
    out_rows: int | None = None
    key_by_element: bool = False
    room: int = 0

    @cached_property
    def old(self) -> int:
        """Rows of the plane."""
        return sum(place.stop - place.start for place in self.places)

    @cached_property
    def count(self) -> int:
        """Rows in all."""
        return self.old + self.chunk

    @cached_property
    def filled(self) -> int:
        """Rows in all, with the zeros after them."""
        return max(self.count, self.room)

    @cached_property
    def cut(self) -> Index | None:
        """What takes the zeros off the end of ``(1, n_kv_heads, filled, head_dim)``, where there are some."""
        every = slice(None)
        return None if self.count == self.filled else (every, every, slice(0, self.count))

    def launch(
        self, layout: Layout, last: int
    ) -> tuple[int, tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]]:
        """The grid, the scalars (the kernels differ in the ``last``), the shapes of the arrays made."""
        low = self.places[0] if self.places else slice(0, 0)
        told = (
            layout.kv_dim,
            layout.head_dim,
            layout.capacity,
            int(layout.head_major),
            self.count,
            low.start,
            low.stop - low.start,
            self.places[1].start if len(self.places) > 1 else 0,
            self.out_first,
            self.filled if self.out_rows is None else self.out_rows,
            int(self.key_by_element),
            self.filled,
            last,
        )
        shape = (1, layout.n_kv_heads, self.filled, layout.head_dim)
        return -(-self.filled // ROWS) * layout.kv_dim, told, (shape, shape)


def rows(
    device: Device,
    chunk: tuple[Any, Any],
    buffers: tuple[Buffer, Buffer],
    layout: Layout,
    wanted: Handed,
    out: tuple[Any, Any] | None = None,
    kind: Kind = "float32",
) -> list[Any]:
    """Rows of a plane, then of a chunk, for a model: ``muser_kv_rows_f16``; the arrays made for them."""
    grid, told, shapes = wanted.launch(layout, wanted.old)
    arguments = [*chunk, *buffers, *(out or map(Fresh, shapes)), *told]
    return device.launch("muser_kv_rows_f16", grid, arguments, kind)


def store_rows(
    device: Device,
    token: tuple[Any, Any],
    buffers: tuple[Buffer, Buffer],
    layout: Layout,
    wanted: Handed,
    row: int,
    out: tuple[Any, Any] | None = None,
    kind: Kind = "float32",
) -> list[Any]:
    """One token into ``row``, and rows of the plane for a model: ``muser_kv_store_rows_f16``.

    KernelError where ``row`` is not among the rows wanted: no thread would store it.
    """
    if not any(place.start <= row < place.stop for place in wanted.places):
        raise KernelError(f"row {row} is not among {wanted.places}: hand over the row that is stored")
    grid, told, shapes = wanted.launch(layout, row)
    arguments = [*token, *buffers, *(out or map(Fresh, shapes)), *told]
    return device.launch("muser_kv_store_rows_f16", grid, arguments, kind)


def _live_rows(ring: Ring) -> list[int]:
    """rows, low_rows, gap: where live row ``i`` lies, in ascending physical order."""
    wrapped = max(0, ring.origin_physical + ring.len - ring.capacity)
    gap = ring.capacity - ring.len if wrapped else ring.origin_physical
    return [ring.len, wrapped, gap]


def _heads(n_query_heads: int, layout: Layout) -> list[int]:
    return [n_query_heads, layout.n_kv_heads, layout.head_dim, layout.capacity, int(layout.head_major)]


def scores(
    device: Device, query: Any, key_cache: Buffer, n_query_heads: int, layout: Layout, ring: Ring
) -> Any:
    """Scaled q.k of every live row, in ascending physical order: f32, (heads, len)."""
    scale = float(np.float32(layout.head_dim**-0.5))
    arguments = [query, key_cache, Fresh((n_query_heads, ring.len)), *_heads(n_query_heads, layout)]
    return device.launch(
        "muser_scores_f32", n_query_heads * ring.len, [*arguments, *_live_rows(ring), scale]
    )[0]


def weights(device: Device, scored: Any, n_query_heads: int, ring: Ring) -> Any:
    """exp(score - the head's largest): f32, (heads, len)."""
    fresh = Fresh((n_query_heads, ring.len))
    return device.launch("muser_weights_f32", n_query_heads, [scored, fresh, n_query_heads, ring.len])[0]


def mix(
    device: Device,
    weighted: Any,
    value_cache: Buffer,
    starts: npt.NDArray[np.uint32],
    n_query_heads: int,
    layout: Layout,
    ring: Ring,
) -> Any:
    """Softmax sum and P.V from each of ``starts``: f32, (orders, heads, head_dim)."""
    orders = starts.size
    groups = -(-layout.head_dim // GROUP)
    fresh = Fresh((orders, n_query_heads, layout.head_dim))
    return device.launch(
        "muser_mix_f32",
        orders * n_query_heads * groups,
        [
            weighted,
            value_cache,
            device.put(starts),
            fresh,
            orders,
            *_heads(n_query_heads, layout),
            *_live_rows(ring),
        ],
    )[0]


def lanes(
    device: Device, scored: Any, value_cache: Buffer, n_query_heads: int, layout: Layout, ring: Ring
) -> Any:
    """The 32-lane reader on scores: f32, (heads, head_dim)."""
    fresh = Fresh((n_query_heads, layout.head_dim))
    return device.launch(
        "muser_lanes_f32",
        n_query_heads * layout.head_dim,
        [scored, value_cache, fresh, *_heads(n_query_heads, layout), *_live_rows(ring)],
    )[0]


def project(device: Device, attended: Any, n_inputs: int, vocab: int, seed: int) -> Any:
    """Stand-in logits: f32, (vocab,)."""
    return device.launch("muser_project_f32", vocab, [attended, Fresh((vocab,)), n_inputs, vocab, seed])[0]
