"""The 2 x 2 of layout and layer class: which cells hold planes, and what each would cost (§15.8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muser_viz.checks import whole
from muser_viz.geometry import LayerKind
from muser_viz.layout import Layout
from muser_viz.ring import Ring
from muser_viz.store import KvStore


@dataclass(frozen=True)
class Cell:
    """One cell: ``planes`` of the store lie in it, with ``nbytes`` of live rows, K and V.

    ``head_runs`` and ``window_runs`` are those of one buffer of one plane of this
    class in this layout, whether or not the store has one (``runs``).
    """

    kind: LayerKind
    layout: str
    planes: int
    nbytes: int
    head_runs: int
    window_runs: int


def runs(layout: Layout, ring: Ring, kv_head: int | None = None) -> int:
    """Unbroken stretches of memory that the live rows of one buffer lie in, oldest token first (§15.8).

    ``kv_head``: that head's part of each row; None: whole rows, which a
    head-major buffer gives head by head. InputError for a head that is none.
    """
    if kv_head is not None:
        kv_head = whole("kv_head", kv_head, 0, layout.n_kv_heads - 1)
    heads = np.arange(layout.n_kv_heads) if kv_head is None else np.array([kv_head])
    rows = (ring.origin_physical + np.arange(ring.len)) % ring.capacity
    if layout.head_major:
        first = (heads[:, None] * layout.capacity + rows[None, :]) * layout.head_dim
    else:
        first = rows[:, None] * layout.kv_dim + heads[None, :] * layout.head_dim
    starts = first.ravel()
    return int((np.diff(starts) != layout.head_dim).sum()) + 1 if starts.size else 0


def cells(store: KvStore, context: int) -> tuple[Cell, ...]:
    """The four cells of ``store``'s geometry after ``context`` tokens, sliding layers first (§15.8).

    Which planes exist, and in which layout, is taken from the planes of
    ``store``; their sizes are those at the context limit. InputError outside
    ``1 .. context_limit``.
    """
    geometry = store.geometry
    context = whole("context", context, 1, geometry.context_limit)
    found = []
    for kind in LayerKind:
        layers = [layer for layer in range(geometry.n_layers) if geometry.kind(layer) is kind]
        for head_major in (False, True):
            capacity = geometry.capacity(layers[0], geometry.context_limit) if layers else 1
            layout = Layout(capacity, geometry.n_kv_heads, geometry.head_dim, head_major)
            ring = Ring(capacity)
            ring.append_batch(0, context)
            planes = sum(store.planes[layer].head_major == head_major for layer in layers)
            nbytes = planes * 2 * ring.len * layout.kv_dim * np.dtype(np.float16).itemsize
            found.append(Cell(kind, layout.name, planes, nbytes, runs(layout, ring, 0), runs(layout, ring)))
    return tuple(found)
