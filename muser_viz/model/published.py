"""Planes on a GPU that MLX's own attention reads: a kernel writes rows, a slice update publishes them.

A kernel that writes a plane in place is not seen by MLX, so before MLX's attention
read it, its fence would have to be evaluated: a stall for every layer. Here the
store kernel writes the new rows into a small plane of their own, and MLX copies
them to their place in the large one with a slice update. That is in MLX's graph,
so nothing waits, and MLX donates the plane: no copy of it is made while nothing
else holds it. (§15.4, §15.8)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz.devices.mlx_gpu import _THREADS, FencedBuffer, MlxDevice
from muser_viz.layout import Index, Layout
from muser_viz.plane import KvPlane


class PublishedBuffer(FencedBuffer):
    """An f16 ``mlx.core.array`` in the plane's own shape."""

    def __init__(self, contents: npt.NDArray[np.float16]) -> None:
        super().__init__(contents)
        import mlx.core as mx

        if contents.size == self.array.size:
            self.array = mx.array(np.ascontiguousarray(contents))
            mx.eval(self.array)

    def __deepcopy__(self, memo: dict[int, Any]) -> PublishedBuffer:
        """Its own array, which a kernel may write in place."""
        import mlx.core as mx

        mx.eval(self.fence)
        return PublishedBuffer(np.array(self.array))


class PublishedDevice:
    """A GPU whose planes also take rows by slice update; all else is ``MlxDevice``'s."""

    def __init__(self, inner: MlxDevice) -> None:
        self._inner = inner
        self.name = inner.name
        self._words: dict[Layout, Any] = {}
        self._no_fence = inner._mx.zeros((1,), inner._mx.uint32)
        self._tokens: dict[Layout, Callable[[Any, Any], Sequence[Any]]] = {}
        self.put, self.get, self.half, self.read = inner.put, inner.get, inner.half, inner.read
        self.launch, self.describe = inner.launch, inner.describe

    def __deepcopy__(self, memo: dict[int, Any]) -> PublishedDevice:
        return self

    def buffer(self, contents: npt.NDArray[np.float16]) -> PublishedBuffer:
        """A PublishedBuffer with a copy."""
        return PublishedBuffer(contents)

    def write(self, parts: Sequence[tuple[Any, Index, npt.NDArray[np.float16]]]) -> None:
        """Put slices back, each by a slice update."""
        for buffer, index, values in parts:
            self.publish(buffer, index, self._inner._mx.array(values))

    def token(self, layout: Layout) -> Callable[[Any, Any], Sequence[Any]]:
        """``rows`` of one token's ``(1, n_kv_heads, 1, head_dim)``, traced once: queueing costs most."""
        known = self._tokens.get(layout)
        if known is None:
            mx = self._inner._mx

            def rows(keys: Any, values: Any) -> Sequence[Any]:
                key, value = (heads.reshape(1, layout.kv_dim).astype(mx.float32) for heads in (keys, values))
                return self.rows(key, value, layout)

            empty = mx.zeros((1, layout.kv_dim))
            self.rows(empty, empty, layout)  # what it captures is made before the trace
            known = self._tokens[layout] = mx.compile(rows) if self._inner.in_graph else rows
        return known

    def publish(self, buffer: PublishedBuffer, index: Index, rows: Any) -> None:
        """Copy f16 rows to their place in a plane, in MLX's graph."""
        buffer.array[index] = rows

    def rows(self, keys: Any, values: Any, layout: Layout) -> tuple[Any, Any]:
        """K and V rounded to f16 by a store kernel into a plane of just these rows; nothing waits.

        ``keys`` and ``values``: f32 MLX arrays, ``(n, kv_dim)``. Returned in
        ``layout``'s order: ``(n, kv_dim)`` or ``(n_kv_heads, n, head_dim)``.
        """
        mx = self._inner._mx
        count = int(keys.shape[0])
        own = Layout(count, layout.n_kv_heads, layout.head_dim, layout.head_major)
        single = count == 1 and not layout.head_major
        name = "muser_kv_store_f16" if single else "muser_kv_store_batch_f16"
        words = self._words.get(own)
        if words is None:
            scalars = [own.kv_dim, 0, count, 0, count, 0, 0, own.head_dim, int(own.head_major)]
            words = self._words[own] = mx.array(np.array(scalars[:2] if single else scalars, np.uint32))
        key, value, _ = self._inner._call(
            name,
            (False, False),
            [keys, values, words, self._no_fence],
            output_shapes=[own.shape, own.shape, (1,)],
            output_dtypes=[mx.float16, mx.float16, mx.uint32],
            grid=(own.size, 1, 1),
            threadgroup=(min(own.size, _THREADS), 1, 1),
        )
        return key, value


@cache
def _over(inner: MlxDevice) -> PublishedDevice:
    """One for all planes of a device: what it traces serves every layer."""
    return PublishedDevice(inner)


def published(plane: KvPlane) -> PublishedDevice | None:
    """The plane's device once it is a PublishedDevice: it is made one on a GPU; None elsewhere.

    The plane keeps its rows; its buffers are copied once.
    """
    if isinstance(plane.device, PublishedDevice):
        return plane.device
    if not isinstance(plane.device, MlxDevice):
        return None
    device = _over(plane.device)
    key, value = plane.raw_key(), plane.raw_value()
    plane.device = device
    plane.key_cache, plane.value_cache = device.buffer(key), device.buffer(value)
    return device
