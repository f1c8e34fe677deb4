"""A plane of a GPU under MLX: the kernel's rows are published to it in MLX's graph, nothing waits."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import mlx.core as mx

from muser_viz.checks import POSITION_LIMIT
from muser_viz.errors import InputError
from muser_viz.model.published import PublishedBuffer, PublishedDevice
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
from muser_viz.plane import KvPlane
from muser_viz.ring import Ring, spans
from muser_viz.store import Step


class GpuReading:
    """``"plane"`` reads the plane itself, cast to the model's type; ``"copy"`` keeps a cast copy up to date.

    All of it is a function of MLX's arrays: no array that attention still reads is
    changed under it.
    """

    def __init__(self, plane: KvPlane, device: PublishedDevice, reading: Reading) -> None:
        self.plane = plane
        self.reading = reading
        self._device = device
        self._copy: list[Any] = []
        self._copied: object = None

    def __deepcopy__(self, memo: dict[int, Any]) -> GpuReading:
        """Of the plane's copy; its own copy of the rows is made when it is read."""
        return GpuReading(deepcopy(self.plane, memo), self._device, self.reading)

    @property
    def _buffers(self) -> tuple[PublishedBuffer, PublishedBuffer]:
        return self.plane.key_cache, self.plane.value_cache  # type: ignore[return-value]

    @property
    def arrays(self) -> list[Any]:
        """The plane's two arrays, and the copy's."""
        return [*(buffer.array for buffer in self._buffers), *self._copy]

    @property
    def copy_nbytes(self) -> int:
        """Bytes of the copy, where one is kept."""
        return sum(int(array.nbytes) for array in self._copy)

    def store(self, keys: Any, values: Any, layer: int, step: Step | None) -> None:
        """Queue the store kernel, and the slice updates that publish its rows."""
        self._write(keys, values, layer, step)

    def _write(self, keys: Any, values: Any, layer: int, step: Step | None) -> Pair:
        plane, layout, count = self.plane, self.plane.layout, int(keys.shape[2])
        if count * layout.kv_dim >= POSITION_LIMIT:
            raise InputError(f"a chunk of {count} rows has 2**32 elements or more: split it")
        right = self._copy_is_right(keys.dtype)
        ring = plane.ring
        reserved = ring.append_batch(ring.next_position, count, layer)
        if step is not None:
            step.claim(layer)
        if count == 1:
            rows = self._device.token(layout)(keys, values)
        else:
            rows = self._device.rows(rows32(keys), rows32(values), layout)
        done = reserved.source_first
        first = ring.physical(ring.next_position - reserved.source_count)
        for place in spans(first, reserved.source_count, plane.capacity):
            index = layout.index(slice(done, done + place.stop - place.start))
            for i, buffer in enumerate(self._buffers):
                self._device.publish(buffer, layout.index(place), rows[i][index])
                if right:
                    self._copy[i][:, place] = by_head(rows[i][index], layout).astype(keys.dtype)
            done += place.stop - place.start
        move(plane, ring)
        if right:
            self._copied = stamp(plane)
        else:
            self._copy, self._copied = [], None
        return rows[0], rows[1]

    def _copy_is_right(self, kind: Any) -> bool:
        if not self._copy or self._copy[0].dtype != kind:
            return False
        return self._copied is stamp(self.plane)

    def trim(self, ring: Ring) -> None:
        """Take a state with fewer live rows."""
        right = self._copied is stamp(self.plane)
        move(self.plane, ring)
        self._copied = stamp(self.plane) if right else None

    def live(self, kind: Any) -> Pair:
        """The live rows in ascending physical order."""
        layout, places = self.plane.layout, live_places(self.plane)
        if self.reading == "copy" and kind != mx.float16:
            if not self._copy_is_right(kind):
                whole = (by_head(buffer.array, layout) for buffer in self._buffers)
                self._copy = [mx.contiguous(rows.astype(kind)) for rows in whole]
                self._copied = stamp(self.plane)
            held = self._copy
        else:
            held = [by_head(buffer.array, layout) for buffer in self._buffers]
        key, value = (in_one([rows[None, :, p] for p in places], 2).astype(kind) for rows in held)
        # each head's rows together, as mlx-lm holds them: attention's bits depend on the strides as well
        return mx.contiguous(key), mx.contiguous(value)

    def store_staged(self, keys: Any, values: Any, layer: int, step: Step | None) -> Pair:
        """Old rows and chunk as one, in temporal order; the chunk's rows are those that the kernel wrote."""
        plane, layout, kind = self.plane, self.plane.layout, keys.dtype
        places = seen_places(plane)
        old = [[by_head(b.array[layout.index(place)], layout) for place in places] for b in self._buffers]
        rows = self._write(keys, values, layer, step)
        key, value = (in_one([*old[i], by_head(rows[i], layout)], 1)[None].astype(kind) for i in (0, 1))
        return key, value
