"""A host plane's rows a second time, as MLX arrays that attention reads (§15.6)."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_uint64
from typing import Any

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from muser_viz import launches
from muser_viz.devices.host import HostDevice, address
from muser_viz.devices.protocol import KINDS, Kind
from muser_viz.devices.source import catalogue
from muser_viz.launches import Handed
from muser_viz.model.reading import Pair, live_places, stamp
from muser_viz.plane import KvPlane
from muser_viz.ring import Ring

_KERNEL = "muser_kv_store_rows_f16"
_NAMES = [parameter.name for parameter in catalogue()[_KERNEL].buffers]
_FIRST, _OUT_FIRST, _WRITE_INDEX = (_NAMES.index(name) for name in ("first", "out_first", "write_index"))


def _by_element(plane: KvPlane, kind: Kind, ring: Ring) -> bool:
    """Whether K is to lie with the head's elements outermost."""
    return kind != "bfloat16" and not plane.head_major and ring.len == ring.capacity


def words_of(array: Any) -> npt.NDArray[Any]:
    """A C-ordered MLX array that was evaluated, as NumPy sees it without a copy; bf16 as its words."""
    view = memoryview(array)
    return np.frombuffer(view, np.uint16 if array.dtype == mx.bfloat16 else view.format)


class RowCopy:
    """Every row of a plane in MLX's memory: the model's type, the plane's own physical order.

    It lies as MLX's matmul on a CPU is fastest: head by head, for a token-major
    operand would be copied whole for every query head; and in f32 and f16, of a full
    ring, with the elements of K outermost. Where it lies changes no bit: a score is summed
    over the head's elements, one after another, either way. ``ring``: the state that it
    is first read in.
    """

    __slots__ = (
        "_buffers",
        "_code",
        "_given",
        "_plane",
        "_whole",
        "_words",
        "arrays",
        "by_element",
        "kind",
        "stamp",
    )

    def __init__(self, plane: KvPlane, kind: Kind, ring: Ring) -> None:
        layout = plane.layout
        self._plane = plane
        self.by_element = _by_element(plane, kind, ring)
        self.kind = kind
        self.stamp = stamp(plane)
        shape = (1, layout.n_kv_heads, layout.capacity, layout.head_dim)
        shapes = [(*shape[:2], shape[3], shape[2]) if self.by_element else shape, shape]
        self.arrays: list[Any] = [mx.zeros(each, getattr(mx, kind)) for each in shapes]
        mx.eval(self.arrays)
        key, value = self.arrays
        self._whole: Pair = (key.swapaxes(2, 3) if self.by_element else key), value
        mx.eval(self._whole)
        self._words = (words_of(self.arrays[0]), words_of(self.arrays[1]))
        self._buffers = (plane.key_cache, plane.value_cache)
        self.add(slice(0, layout.capacity))
        self._code: Callable[..., None] | None = None
        if isinstance(plane.device, HostDevice):
            self._code = plane.device.code(_KERNEL, kind)
            addresses = [address(array) for array in (*self._buffers, *self._words)]
            _, told, _ = self._newest(0).launch(layout, 0)
            self._given = (c_uint64 * len(_NAMES))(0, 0, *addresses, *told)

    def goes_on(self, kind: Kind, ring: Ring) -> bool:
        """Whether it has the plane's rows as they are now, and can take one more."""
        right = self.stamp is stamp(self._plane) and self.kind == kind
        return right and self.by_element == _by_element(self._plane, kind, ring)

    def add(self, place: slice) -> None:
        """Take rows of the plane."""
        plane, nothing = self._plane, np.zeros(1, KINDS[self.kind])
        wanted = Handed((place,), 0, place.start, plane.capacity, self.by_element)
        launches.rows(
            plane.device, (nothing, nothing), self._buffers, plane.layout, wanted, self._words, self.kind
        )
        self.stamp = stamp(plane)

    def put(self, keys: Any, values: Any, row: int) -> None:
        """Store a token in its row of the plane and here: MLX's arrays of ``kind``, C-ordered, evaluated.

        Once a layer and token, while MLX waits: so nothing is looked at again.
        """
        if self._code is not None:
            given = self._given
            given[0], given[1] = address(keys), address(values)
            given[_FIRST] = given[_OUT_FIRST] = given[_WRITE_INDEX] = row
            self._code(0, self._plane.layout.kv_dim, given)
            return
        device, layout, token = self._plane.device, self._plane.layout, (words_of(keys), words_of(values))
        newest = self._newest(row)
        launches.store_rows(device, token, self._buffers, layout, newest, row, self._words, self.kind)

    def _newest(self, row: int) -> Handed:
        """One row of the plane, to the same row here."""
        return Handed((slice(row, row + 1),), 0, row, self._plane.capacity, self.by_element)

    def live(self, ring: Ring) -> Pair:
        """The live rows of a state in ascending physical order: ``(1, n_kv_heads, len, head_dim)``."""
        key, value = self._whole
        if ring.len == ring.capacity:
            return key, value
        places = live_places(ring)
        if len(places) == 1:
            return key[:, :, places[0]], value[:, :, places[0]]
        key, value = (mx.concatenate([rows[:, :, p] for p in places], axis=2) for rows in (key, value))
        return key, value
