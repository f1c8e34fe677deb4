"""Planes that are wrong on purpose, and a reader that runs to capacity (§15.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz import launches
from muser_viz.checks import floats
from muser_viz.errors import InputError, NotLive
from muser_viz.layout import Layout
from muser_viz.plane import F16, KvPlane
from muser_viz.ring import Ring
from muser_viz.snapshot import PlaneSnapshot

POISON = 0x7E00
"""The word that lies in an UnfilledPlane where nothing was written: an f16 NaN."""


class ModuloPlane(KvPlane):
    """A plane whose stores go to row ``position % capacity``, whatever its origins say (§15.2).

    Its bookkeeping goes on as a KvPlane's, so ``occupants`` says which token
    ought to lie in a row; only the bytes may go to another one. Errors as KvPlane.
    """

    def append(self, position: int, key: Any, value: Any, layer: int | None = None) -> int:
        """Store one token (f32, ``(kv_dim,)``) and return ``position % capacity``; errors as KvPlane's."""
        key = floats("key", key, (self.kv_dim,))
        value = floats("value", value, (self.kv_dim,))
        self._store_batch(self.ring, position, key[None], value[None], layer)
        return position % self.capacity

    def _store_batch(self, ring: Ring, position: int, keys: Any, values: Any, layer: int | None) -> None:
        reserved = ring.append_batch(position, len(keys), layer)
        # with both origins at 0 the kernel's formula is the position modulo the capacity
        forged = replace(reserved, origin_logical=0, origin_physical=0)
        put = self.device.put
        launches.store_batch(
            self.device, put(keys), put(values), self.key_cache, self.value_cache, self.layout, forged
        )
        self._ring = ring


class UnfilledPlane(KvPlane):
    """A plane that nobody zero-fills: where no row was written lies POISON, an f16 NaN (§15.2).

    POISON stands for uninitialised memory, which may hold anything. ``reset``
    moves the origins back and leaves the bytes; ``restore`` writes the live
    rows and no other. Errors as KvPlane.
    """

    @staticmethod
    def _unwritten(layout: Layout) -> F16:
        return np.full(layout.shape, POISON, np.uint16).view(np.float16)

    def reset(self) -> None:
        """Back to an empty plane by its bookkeeping alone: the rows keep what they hold."""
        self._ring = Ring(self.capacity)

    @classmethod
    def restore(
        cls, snapshot: PlaneSnapshot, rotation: int | None = None, backend: str | None = None
    ) -> UnfilledPlane:
        """A new plane with a snapshot's rows, bit for bit; rows outside are POISON. Else as KvPlane's."""
        zeroed = KvPlane.restore(snapshot, rotation, backend)
        layout = zeroed.layout
        plane = cls(layout.capacity, layout.n_kv_heads, layout.head_dim, layout.head_major, backend)
        indexes = [layout.index(rows) for rows in zeroed.ring.live_spans()]
        for source, target in (
            (zeroed.raw_key(), plane.key_cache),
            (zeroed.raw_value(), plane.value_cache),
        ):
            plane.device.write([(target, index, source[index]) for index in indexes])
        plane._ring = zeroed.ring
        return plane


def read_to_capacity(plane: KvPlane, query: Any, masked: bool = False) -> npt.NDArray[np.float64]:
    """Attention over every row of a plane, live or not: f64, ``(n_query_heads, head_dim)`` (§15.2).

    ``query``: f32, same shape, as for ``attend``. Unmasked, a row that is not
    live counts like any other. ``masked`` gives it a weight of exactly 0, and
    still multiplies its V by that. The last bits are the machine's own.
    InputError for another shape, dtype or ``masked``; NotLive where ``masked``
    leaves no row.
    """
    query = floats("query", query, (None, plane.head_dim))
    if not len(query) or len(query) % plane.n_kv_heads:
        raise InputError(
            f"query has {len(query)} heads; give a multiple of the plane's {plane.n_kv_heads} KV heads"
        )
    if not isinstance(masked, (bool, np.bool_)):
        raise InputError(f"masked is {masked!r}; give True or False")
    if masked and plane.len == 0:
        raise NotLive("the plane holds no token; append one before a masked reader reads it")
    keys, values = (_by_query_head(raw, plane, len(query)) for raw in (plane.raw_key(), plane.raw_value()))
    with np.errstate(invalid="ignore", over="ignore"):
        score = (keys * query.astype(np.float64)[:, None]).sum(axis=2) * plane.head_dim**-0.5
        if masked:
            score = np.where(plane.occupants() >= 0, score, -np.inf)
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        return np.asarray((weight[..., None] * values).sum(axis=1))


def _by_query_head(raw: npt.NDArray[np.float16], plane: KvPlane, heads: int) -> npt.NDArray[np.float64]:
    """A whole buffer as each query head sees it: ``(heads, capacity, head_dim)``."""
    if not plane.head_major:
        raw = raw.reshape(plane.capacity, plane.n_kv_heads, plane.head_dim).transpose(1, 0, 2)
    return np.repeat(raw.astype(np.float64), heads // plane.n_kv_heads, axis=0)
