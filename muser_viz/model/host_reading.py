"""A plane of the host under MLX: the kernel writes the plane, attention reads rows in MLX's memory."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from muser_viz.model.reading import Pair, Reading, Seen, by_head, in_one, live_places, move, rows32
from muser_viz.plane import F16, KvPlane
from muser_viz.ring import Ring, spans
from muser_viz.store import Step


class HostReading:
    """``"copy"`` keeps the rows a second time, as MLX arrays; ``"plane"`` copies the live rows at every read.

    The copy is in the model's type and in the plane's own physical order, and each
    new row of it is taken from the plane after the kernel wrote it. It lies as MLX's
    matmul on a CPU is fastest: head by head, for a token-major operand would be
    copied whole for every query head; and in f32 the K of a full ring with the head's
    elements outermost. Where it lies changes no bit: a score is summed over the
    head's elements, one after another, either way.

    A row is put into the copy in place, through a NumPy view taken anew, with which
    MLX has nothing to do; that is safe because the K of the layer above, and so this
    layer's read, was evaluated before. ``last``: no layer is above; then rows of a
    full ring are put there by MLX.
    """

    def __init__(self, plane: KvPlane, reading: Reading, last: bool) -> None:
        self.plane = plane
        self.reading = reading
        self._last = last
        self._key: Any = None
        self._value: Any = None
        self._columns = False
        self._copied: Seen | None = None
        self._step: Step | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> HostReading:
        """Of the plane's copy; its own copy of the rows is made when it is read."""
        return HostReading(deepcopy(self.plane, memo), self.reading, self._last)

    @property
    def arrays(self) -> list[Any]:
        """The copy's two arrays, where one is kept."""
        return [] if self._key is None else [self._key, self._value]

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
        right = self._copy_is_right(kind)
        full = plane.len == plane.capacity
        if step is not None:
            step.write(layer, keys, values)
            self._step = step
        elif count == 1:
            plane.store_row(position, keys[0], values[0], layer)
        else:
            plane.store_chunk(position, keys, values, layer)
        first = plane.physical(position) if count <= plane.capacity else plane.capacity
        if right and first + count <= plane.capacity and (full or not self._turns()):
            self._follow(slice(first, first + count), kind, full)
            self._copied = Seen(plane)
        else:
            self._drop()

    def _turns(self) -> bool:
        """Whether K of this plane, now full, should lie with the head's elements outermost."""
        plane = self.plane
        return self._key.dtype == mx.float32 and not plane.head_major and plane.len == plane.capacity

    def _follow(self, place: slice, kind: Any, overwrites: bool) -> None:
        """Bring the rows of ``place`` in the copy up to date with the plane."""
        layout = self.plane.layout
        rows = [by_head(self._held(buffer)[layout.index(place)], layout) for buffer in self._buffers]
        if self._columns:
            rows[0] = rows[0].swapaxes(1, 2)
        for copy, written, columns in ((self._key, rows[0], self._columns), (self._value, rows[1], False)):
            index = (slice(None), slice(None), place) if columns else (slice(None), place)
            if kind == mx.bfloat16 or (overwrites and self._last):
                copy[index] = mx.array(np.ascontiguousarray(written)).astype(kind)
            else:
                np.array(copy, copy=False)[index] = written

    @property
    def _buffers(self) -> tuple[Any, Any]:
        return self.plane.key_cache, self.plane.value_cache

    def _held(self, buffer: Any) -> F16:
        """A buffer's contents, to be read at once."""
        return np.asarray(self.plane.device.half(buffer))

    def _copy_is_right(self, kind: Any) -> bool:
        if self._key is None or self._key.dtype != kind:
            return False
        if self._step is not None and not self._step.open:
            undone, self._step = self._step.undone, None
            if undone:
                return False
        return self._copied is not None and self._copied.still(self.plane)

    def _drop(self) -> None:
        self._key = self._value = self._copied = None

    def trim(self, ring: Ring) -> None:
        """Take a state with fewer live rows."""
        right = self._copied is not None and self._copied.still(self.plane)
        move(self.plane, ring)
        if right and not self._columns:
            self._copied = Seen(self.plane)
        else:
            self._drop()

    def live(self, kind: Any) -> Pair:
        """The live rows in ascending physical order."""
        if self.reading == "plane":
            return self._copied_now(kind)
        if not self._copy_is_right(kind):
            self._build(kind)
        places = live_places(self.plane)
        key = self._key.swapaxes(1, 2) if self._columns else self._key

        def taken(rows: Any) -> Any:
            if places[0] == slice(0, self.plane.capacity):
                return rows[None]
            return in_one([rows[None, :, place] for place in places], 2)

        return taken(key), taken(self._value)

    def _build(self, kind: Any) -> None:
        layout = self.plane.layout

        def rows(buffer: Any) -> Any:
            return mx.array(np.ascontiguousarray(by_head(self._held(buffer), layout))).astype(kind)

        self._key, self._value = (rows(buffer) for buffer in self._buffers)
        self._columns = self._turns()
        if self._columns:
            self._key = mx.contiguous(self._key.swapaxes(1, 2))
        mx.eval(self._key, self._value)
        self._copied = Seen(self.plane)

    def _copied_now(self, kind: Any) -> Pair:
        layout, places = self.plane.layout, live_places(self.plane)

        def rows(buffer: Any) -> Any:
            held = by_head(self._held(buffer), layout)
            return mx.array(np.concatenate([held[:, place] for place in places], axis=1))[None].astype(kind)

        return rows(self.plane.key_cache), rows(self.plane.value_cache)

    def store_staged(self, keys: Any, values: Any, layer: int, step: Step | None) -> Pair:
        """Copy out the rows that the chunk's queries see, store the chunk; old rows and chunk as one."""
        plane, layout = self.plane, self.plane.layout
        seen = min(plane.len, plane.capacity - 1)
        first = plane.physical(plane.next_position - seen) if seen else 0
        parts = [
            [by_head(self._held(buffer)[layout.index(place)], layout).copy() for buffer in self._buffers]
            for place in spans(first, seen, plane.capacity)
        ]
        k32, v32 = self._ready(keys, values)
        chunk = KvPlane(len(k32), layout.n_kv_heads, layout.head_dim, True, backend=plane.backend)
        chunk.append_batch(0, k32, v32)
        parts.append([chunk.raw_key(), chunk.raw_value()])
        self._write(k32, v32, layer, step, keys.dtype)
        key, value = (mx.array(np.concatenate([part[i] for part in parts], axis=1)) for i in (0, 1))
        return key[None].astype(keys.dtype), value[None].astype(keys.dtype)
