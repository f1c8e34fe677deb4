"""A plane of the host under MLX: the kernel writes the plane, attention reads rows in MLX's memory."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from functools import lru_cache
from typing import Any

import mlx.core as mx

from muser_viz import launches
from muser_viz.devices.protocol import Buffer, Kind
from muser_viz.launches import Handed
from muser_viz.model.reading import (
    NextToken,
    Pair,
    State,
    live_places,
    next_chunk,
    next_token,
    ring_of,
    rows,
    stamp,
    without_room,
)
from muser_viz.model.row_copy import RowCopy, words_of
from muser_viz.plane import KvPlane
from muser_viz.ring import Ring

_queue: Any = mx.async_eval


@lru_cache(maxsize=64)
def _next_token(state: State) -> NextToken:
    """A model's planes in one state ask for it in turn."""
    return next_token(ring_of(state))


class HostReading:
    """Attention reads a copy of the rows in MLX's memory, in the model's type; a token adds its row in place.

    That is safe because the K of the layer above, and so this layer's read, was
    evaluated before. ``last``: no layer is above. Then a ring's rows are copied at
    every read, and a growing plane's after a trim.
    """

    __slots__ = ("_copy", "_keeps", "_last", "plane")

    def __init__(self, plane: KvPlane, last: bool) -> None:
        self.plane = plane
        self._last = last
        self._keeps = plane.head_major or not last
        self._copy: RowCopy | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> HostReading:
        """Of the plane's copy; its own copy of the rows is made when it is read."""
        return HostReading(deepcopy(self.plane, memo), self._last)

    @property
    def offset(self) -> int:
        """The next position."""
        return self.plane.next_position

    @property
    def _buffers(self) -> tuple[Buffer, Buffer]:
        return self.plane.key_cache, self.plane.value_cache

    @property
    def arrays(self) -> list[Any]:
        """The copy's two arrays, where one is kept."""
        return [] if self._copy is None else self._copy.arrays

    @property
    def copy_nbytes(self) -> int:
        """Bytes of the copy, where one is kept."""
        return sum(int(array.nbytes) for array in self.arrays)

    def again(self, keys: Any, values: Any) -> Pair | None:
        """Have K and V computed while they are looked at; nothing is stored."""
        with suppress(ValueError, TypeError):
            _queue(keys, values)
        return None

    def one(self, keys: Any, values: Any, kind: Kind) -> Pair:
        """Wait for K and V; store their row, and hand it on to the copy."""
        plane, copy = self.plane, self._copy
        ring, row, live = _next_token(plane.state)
        if not self._keeps:
            token, buffers = _given(keys, values), self._buffers
            made = launches.store_rows(plane.device, token, buffers, plane.layout, live, row, None, kind)
            plane.advance(ring.copy())
            return _taken(made, kind, live)
        if copy is None or not copy.goes_on(kind, ring):
            copy = self._copy = RowCopy(plane, kind, ring)
        pair = copy.live(ring)
        copy.put(*_dense(keys, values), row)
        plane.advance(ring.copy())
        copy.stamp = stamp(plane)
        return pair

    def chunk(self, keys: Any, values: Any, kind: Kind, staged: bool) -> Pair:
        """Wait for a chunk, store it, hand rows over: before the store where they are staged, else after it.

        Where they are staged, the copy is made anew when a token is stored next.
        """
        plane, copy, before = self.plane, self._copy, self.plane.len
        ring, reserved, handed = next_chunk(plane.state, keys.shape[2], staged)
        if staged or copy is None or not copy.goes_on(kind, ring):
            copy = self._copy = None
        given = _given(rows(keys), rows(values))
        pair = self._hand(given, handed, kind) if staged else None
        launches.store_batch(plane.device, *given, *self._buffers, plane.layout, reserved, kind)
        plane.advance(ring.copy())
        if copy is not None:
            copy.add(slice(before, ring.len))
        return pair or self._hand(given, handed, kind)

    def live(self, kind: Kind) -> Pair:
        """The live rows in ascending physical order, copied now."""
        nothing = mx.zeros((1,), getattr(mx, kind))
        return self._hand(_given(nothing, nothing), Handed(live_places(self.plane.ring)), kind)

    def _hand(self, chunk: Pair, handed: Handed, kind: Kind) -> Pair:
        plane = self.plane
        made = launches.rows(plane.device, chunk, self._buffers, plane.layout, handed, None, kind)
        return _taken(made, kind, handed)

    def trim(self, ring: Ring) -> None:
        """Take a state with fewer live rows."""
        copy = self._copy
        right = copy is not None and copy.stamp is stamp(self.plane) and not copy.by_element
        self.plane.advance(ring)
        if copy is not None and right and not self._last:
            copy.stamp = stamp(self.plane)


def _dense(keys: Any, values: Any) -> Pair:
    """K and V, evaluated and C-ordered."""
    mx.eval(keys, values)
    if memoryview(keys).c_contiguous and memoryview(values).c_contiguous:
        return keys, values
    keys, values = mx.contiguous(keys), mx.contiguous(values)
    mx.eval(keys, values)
    return keys, values


def _given(keys: Any, values: Any) -> Pair:
    """K and V as the device takes them."""
    keys, values = _dense(keys, values)
    return words_of(keys), words_of(values)


def _taken(made: list[Any], kind: Kind, handed: Handed) -> Pair:
    """What a launch made, as MLX arrays of ``kind``, without the zeros at their end."""
    key, value = (mx.array(array).view(getattr(mx, kind)) for array in made)
    return without_room(key, value, handed.cut)
