"""A plane of the host under MLX: the kernel writes the plane, attention reads rows in MLX's memory."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from muser_viz.model.reading import (
    Pair,
    Reading,
    by_head,
    in_one,
    live_places,
    move,
    rows32,
    seen_places,
    stamp,
)
from muser_viz.model.row_copy import RowCopy
from muser_viz.plane import F16, KvPlane
from muser_viz.ring import Ring
from muser_viz.store import Step


class HostReading:
    """``"copy"`` keeps the rows a second time, as MLX arrays; ``"plane"`` copies the live rows at every read.

    A row is put into the copy in place; that is safe because the K of the layer above,
    and so this layer's read, was evaluated before. ``last``: no layer is above; then
    rows of a ring are put there by MLX.
    """

    def __init__(self, plane: KvPlane, reading: Reading, last: bool) -> None:
        self.plane = plane
        self.reading = reading
        self._last = last
        self._copy: RowCopy | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> HostReading:
        """Of the plane's copy; its own copy of the rows is made when it is read."""
        return HostReading(deepcopy(self.plane, memo), self.reading, self._last)

    @property
    def arrays(self) -> list[Any]:
        """The copy's two arrays, where one is kept."""
        return [] if self._copy is None else self._copy.arrays

    @property
    def copy_nbytes(self) -> int:
        """Bytes of the copy, where one is kept."""
        return sum(int(array.nbytes) for array in self.arrays)

    def store(self, keys: Any, values: Any, layer: int, step: Step | None) -> None:
        """Wait for K and V, and let a store kernel write their rows."""
        k32, v32 = self._ready(keys, values)
        self._write(k32, v32, layer, step, keys.dtype)

    def _ready(self, keys: Any, values: Any) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        ready = rows32(keys), rows32(values)
        mx.eval(ready)
        return np.array(ready[0], copy=False), np.array(ready[1], copy=False)

    def _write(self, keys: Any, values: Any, layer: int, step: Step | None, kind: Any) -> None:
        plane, count, position = self.plane, len(keys), self.plane.next_position
        copy = self._right_copy(kind)
        if step is not None:
            step.write(layer, keys, values)
        elif count == 1:
            plane.store_row(position, keys[0], values[0], layer)
        else:
            plane.store_chunk(position, keys, values, layer)
        if copy is None:
            return
        first = plane.physical(position) if count <= plane.capacity else plane.capacity
        if first + count > plane.capacity or not copy.put(plane, slice(first, first + count)):
            self._copy = None

    def _right_copy(self, kind: Any) -> RowCopy | None:
        """The copy, where it has the plane's rows as they are now, in the type asked for."""
        copy = self._copy
        if copy is None or copy.stamp is not stamp(self.plane) or copy.kind != kind:
            return None
        return copy

    def _held(self, buffer: Any) -> F16:
        """A buffer's contents, to be read at once."""
        return np.asarray(self.plane.device.half(buffer))

    def trim(self, ring: Ring) -> None:
        """Take a state with fewer live rows."""
        copy = self._copy
        right = copy is not None and copy.stamp is stamp(self.plane)
        move(self.plane, ring)
        if not right or copy is None or not copy.trimmed(self.plane):
            self._copy = None

    def live(self, kind: Any) -> Pair:
        """The live rows in ascending physical order."""
        if self.reading == "plane":
            return self._copied_now(kind)
        copy = self._right_copy(kind)
        if copy is None:
            copy = self._copy = RowCopy(self.plane, kind, self._last and not self.plane.head_major)
        key, value = copy.pair()
        if self.plane.len == self.plane.capacity:
            return key[None], value[None]
        places = live_places(self.plane)
        key, value = (in_one([rows[None, :, place] for place in places], 2) for rows in (key, value))
        return key, value

    def _copied_now(self, kind: Any) -> Pair:
        layout, places = self.plane.layout, live_places(self.plane)

        def rows(buffer: Any) -> Any:
            held = by_head(self._held(buffer), layout)
            return mx.array(np.concatenate([held[:, place] for place in places], axis=1))[None].astype(kind)

        return rows(self.plane.key_cache), rows(self.plane.value_cache)

    def store_staged(self, keys: Any, values: Any, layer: int, step: Step | None) -> Pair:
        """Copy out the rows that the chunk's queries see, store the chunk; old rows and chunk as one."""
        plane, layout = self.plane, self.plane.layout
        buffers = (plane.key_cache, plane.value_cache)
        parts = [
            [by_head(self._held(buffer)[layout.index(place)], layout).copy() for buffer in buffers]
            for place in seen_places(plane)
        ]
        k32, v32 = self._ready(keys, values)
        chunk = KvPlane(len(k32), layout.n_kv_heads, layout.head_dim, True, backend=plane.backend)
        chunk.append_batch(0, k32, v32)
        parts.append([chunk.raw_key(), chunk.raw_value()])
        self._write(k32, v32, layer, step, keys.dtype)
        key, value = (mx.array(np.concatenate([part[i] for part in parts], axis=1)) for i in (0, 1))
        return key[None].astype(keys.dtype), value[None].astype(keys.dtype)
