"""A host plane's rows a second time, as MLX arrays that attention reads (§15.6)."""

from __future__ import annotations

from functools import cache
from typing import Any

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from muser_viz.model.reading import Pair, by_head, stamp
from muser_viz.plane import F16, KvPlane


def bfloat16_words(rows: F16) -> npt.NDArray[np.uint16]:
    """The words of f16 numbers as bf16, rounded to nearest even: what MLX's cast gives."""
    words = rows.astype(np.float32).view(np.uint32)
    rounded = (words + np.uint32(0x7FFF) + ((words >> 16) & 1)) >> 16
    quiet = (words >> 16) | np.uint32(0x40)
    return np.where(np.isnan(rows), quiet, rounded).astype(np.uint16)


@cache
def _bfloat16_table() -> npt.NDArray[np.uint16]:
    return bfloat16_words(np.arange(1 << 16, dtype=np.uint16).view(np.float16))


def _by_element(plane: KvPlane, kind: Any) -> bool:
    """Whether K is to lie with the head's elements outermost."""
    return bool(kind == mx.float32) and not plane.head_major and plane.len == plane.capacity


class RowCopy:
    """Every row of a plane in MLX's memory: the model's type, the plane's own physical order.

    It lies as MLX's matmul on a CPU is fastest: head by head, for a token-major
    operand would be copied whole for every query head; and in f32, of a full ring,
    with the elements of K outermost. Where it lies changes no bit: a score is summed
    over the head's elements, one after another, either way.

    ``put`` brings rows up to date from what the kernel wrote, in place, through NumPy
    views of MLX's memory. ``lazily``: through MLX instead, so that what was handed
    out before keeps its rows.
    """

    def __init__(self, plane: KvPlane, kind: Any, lazily: bool) -> None:
        self._columns = _by_element(plane, kind)
        self._lazily = lazily
        self.kind = kind
        self.stamp = stamp(plane)
        buffers: tuple[Any, Any] = (plane.key_cache, plane.value_cache)
        self._rows = [by_head(np.asarray(buffer), plane.layout) for buffer in buffers]
        made = [mx.array(np.ascontiguousarray(rows)).astype(kind) for rows in self._rows]
        if self._columns:
            made[0] = mx.contiguous(made[0].swapaxes(1, 2))
        words = [array.view(mx.uint16) if kind == mx.bfloat16 else array for array in made]
        mx.eval(words)
        self.arrays = [word.view(kind) for word in words] if kind == mx.bfloat16 else words
        mx.eval(self.arrays)
        self._views = [] if lazily else [np.array(word, copy=False) for word in words]
        if self._columns and self._views:
            self._views[0] = self._views[0].swapaxes(1, 2)

    def put(self, plane: KvPlane, place: slice) -> bool:
        """Take the rows that the kernel wrote at ``place``; False where another copy is to be made."""
        if _by_element(plane, self.kind) and not self._columns:
            return False
        if self._lazily:
            for i, rows in enumerate(self._rows):
                written = mx.array(np.ascontiguousarray(rows[:, place])).astype(self.kind)
                if self._columns and i == 0:
                    self.arrays[0][:, :, place] = written.swapaxes(1, 2)
                else:
                    self.arrays[i][:, place] = written
        else:
            for view, rows in zip(self._views, self._rows, strict=True):
                if self.kind == mx.bfloat16:
                    view[:, place] = _bfloat16_table()[rows[:, place].view(np.uint16)]
                else:
                    view[:, place] = rows[:, place]
        self.stamp = stamp(plane)
        return True

    def trimmed(self, plane: KvPlane) -> bool:
        """Go on after a trim, which leaves the rows as they are; False where another copy is to be made."""
        self.stamp = stamp(plane)
        return not self._columns

    def pair(self) -> Pair:
        """K and V of every row, live or not: ``(n_kv_heads, capacity, head_dim)``."""
        key, value = self.arrays
        return (key.swapaxes(1, 2) if self._columns else key), value
