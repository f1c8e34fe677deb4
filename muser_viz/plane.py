"""One layer's plane: a ring and two f16 buffers that the store kernels write (§15.2)."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz import devices, launches
from muser_viz.checks import POSITION_LIMIT, floats, span, whole
from muser_viz.devices.protocol import Buffer
from muser_viz.errors import InputError
from muser_viz.layout import Index, Layout
from muser_viz.ring import Ring, spans
from muser_viz.snapshot import PlaneSnapshot

F16 = npt.NDArray[np.float16]


@dataclass(frozen=True)
class Undo:
    """A plane's ring, and the bytes of the rows that a store is about to overwrite."""

    ring: Ring
    parts: tuple[tuple[Buffer, Index], ...]
    contents: tuple[F16, ...] = ()


class KvPlane:
    """The chapter's MetalKvPlane: seven fields, zero-filled (§15.2).

    ``capacity`` rows of ``n_kv_heads * head_dim`` f16 elements for K and again
    for V, token-major or head-major. It wraps at its capacity in either layout.
    ``backend`` names where its kernels run; None takes the one in use.
    InputError for a size that is no whole number of at least 1, or too large
    for a kernel's ``uint`` index; BackendUnavailable.
    """

    __slots__ = ("_ring", "device", "held", "key_cache", "layout", "value_cache")

    def __init__(
        self,
        capacity: int,
        n_kv_heads: int = 2,
        head_dim: int = 128,
        head_major: bool = False,
        backend: str | None = None,
    ) -> None:
        layout = Layout(capacity, n_kv_heads, head_dim, head_major)
        empty = self._unwritten(layout)
        self._build(layout, Ring(layout.capacity), empty, empty, backend)

    @staticmethod
    def _unwritten(layout: Layout) -> F16:
        """What a buffer holds before its first store: zeros."""
        return np.zeros(layout.shape, np.float16)

    def _build(self, layout: Layout, ring: Ring, key: F16, value: F16, backend: str | None) -> None:
        self.held = False
        """Whether a step of a store is open: then it alone writes here."""
        self.device = devices.device(backend)
        self.layout = layout
        self._ring = ring
        self.key_cache = self.device.buffer(key)
        self.value_cache = self.device.buffer(value)

    @property
    def capacity(self) -> int:
        """Rows allocated."""
        return self.layout.capacity

    @property
    def n_kv_heads(self) -> int:
        """KV heads of a row."""
        return self.layout.n_kv_heads

    @property
    def head_dim(self) -> int:
        """Elements of one head of a row."""
        return self.layout.head_dim

    @property
    def kv_dim(self) -> int:
        """Elements of one row."""
        return self.layout.kv_dim

    @property
    def head_major(self) -> bool:
        """Which of the two layouts of §15.3."""
        return self.layout.head_major

    @property
    def backend(self) -> str:
        """The name of the backend that runs its kernels."""
        return self.device.name

    @property
    def ring(self) -> Ring:
        """A copy of the bookkeeping."""
        return self._ring.copy()

    @property
    def len(self) -> int:
        """Rows that are live."""
        return self._ring.len

    @property
    def origin_logical(self) -> int:
        """Token position at the front of the live window."""
        return self._ring.origin_logical

    @property
    def origin_physical(self) -> int:
        """Row that holds the token at the front of the window."""
        return self._ring.origin_physical

    @property
    def next_position(self) -> int:
        """The only token position that is accepted next."""
        return self._ring.next_position

    @property
    def state(self) -> tuple[int, int, int, int]:
        """Capacity, len, and both origins."""
        return self._ring.state

    @property
    def nbytes(self) -> int:
        """Bytes allocated, K and V."""
        return self._bytes_of(self.capacity)

    @property
    def live_nbytes(self) -> int:
        """Bytes of the live rows, K and V."""
        return self._bytes_of(self.len)

    def _bytes_of(self, rows: int) -> int:
        return 2 * rows * self.kv_dim * np.dtype(np.float16).itemsize

    def physical(self, position: int) -> int:
        """The row of a live token; NotLive otherwise (§15.2)."""
        return self._ring.physical(position)

    def occupants(self) -> npt.NDArray[np.int64]:
        """The token of each row, -1 where none is live: int64, ``(capacity,)``."""
        return self._ring.occupants()

    def append(self, position: int, key: Any, value: Any, layer: int | None = None) -> int:
        """Store one token's K and V (f32, ``(kv_dim,)``) through a store kernel; its row (§15.4, §15.5).

        CacheDiscontinuity unless ``position == next_position``; InputError for
        another shape or dtype, or while a step of a store is open. Then nothing is
        changed.
        """
        self._refuse_if_held()
        return self.store_row(position, key, value, layer)

    def store_row(self, position: int, key: Any, value: Any, layer: int | None = None) -> int:
        """``append`` for the step that holds this plane."""
        ring = self._ring.copy()
        key = floats("key", key, (self.kv_dim,))
        value = floats("value", value, (self.kv_dim,))
        if self.head_major:
            self._store_batch(ring, position, key[None], value[None], layer)
            return ring.physical(position)
        row = ring.append(position, layer)
        put = self.device.put
        launches.store(self.device, put(key), put(value), self.key_cache, self.value_cache, self.kv_dim, row)
        self._ring = ring
        return row

    def append_batch(self, position: int, keys: Any, values: Any, layer: int | None = None) -> None:
        """Store a chunk (f32, ``(n, kv_dim)``) through the batch kernel (§15.4, §15.5).

        The end state is that of ``n`` single appends. Errors as ``append``.
        """
        self._refuse_if_held()
        self.store_chunk(position, keys, values, layer)

    def store_chunk(self, position: int, keys: Any, values: Any, layer: int | None = None) -> None:
        """``append_batch`` for the step that holds this plane."""
        keys = floats("keys", keys, (None, self.kv_dim))
        values = floats("values", values, keys.shape)
        if keys.size >= POSITION_LIMIT:
            raise InputError(f"a chunk of {keys.shape[0]} rows has 2**32 elements or more: split it")
        self._store_batch(self._ring.copy(), position, keys, values, layer)

    def _store_batch(self, ring: Ring, position: int, keys: Any, values: Any, layer: int | None) -> None:
        reserved = ring.append_batch(position, len(keys), layer)
        if reserved.source_count:
            put = self.device.put
            launches.store_batch(
                self.device, put(keys), put(values), self.key_cache, self.value_cache, self.layout, reserved
            )
        self._ring = ring

    def advance(self, ring: Ring) -> None:
        """Take the state after a store that a caller launched on the buffers itself."""
        self._ring = ring

    def raw_key(self) -> F16:
        """A copy of the whole K buffer in its own layout (``layout.shape``): f16."""
        return np.asarray(self.device.get(self.key_cache)).reshape(self.layout.shape)

    def raw_value(self) -> F16:
        """A copy of the whole V buffer in its own layout (``layout.shape``): f16."""
        return np.asarray(self.device.get(self.value_cache)).reshape(self.layout.shape)

    def row(self, physical: int) -> tuple[F16, F16]:
        """Copies of one physical row of K and of V, as they lie in the buffers: f16, ``(kv_dim,)`` (§15.2).

        InputError outside ``0 .. capacity - 1``.
        """
        physical = whole("physical", physical, 0, self.capacity - 1)
        index = self.layout.index(slice(physical, physical + 1))
        parts = self.device.read([(buffer, index) for buffer in (self.key_cache, self.value_cache)])
        key, value = (np.asarray(part).reshape(self.kv_dim) for part in parts)
        return key, value

    def keys(self) -> F16:
        """The live K rows in logical order, a copy: f16, ``(n_kv_heads, len, head_dim)``."""
        return self._logical(self.key_cache)

    def values(self) -> F16:
        """The live V rows in logical order, a copy: f16, ``(n_kv_heads, len, head_dim)``."""
        return self._logical(self.value_cache)

    def _logical(self, buffer: Buffer) -> F16:
        parts = self.device.read([(buffer, self.layout.index(rows)) for rows in self._ring.live_spans()])
        heads = [_by_head(part, self.layout) for part in parts]
        if not heads:
            return np.empty((self.n_kv_heads, 0, self.head_dim), np.float16)
        return np.concatenate(heads, axis=1)

    def reset(self) -> None:
        """Back to an empty plane: the buffers zeroed, the origins at 0 (§15.2).

        InputError while a step of a store is open.
        """
        self._refuse_if_held()
        empty = self._unwritten(self.layout)
        self._build(self.layout, Ring(self.capacity), empty, empty, self.backend)

    def _refuse_if_held(self) -> None:
        if self.held:
            raise InputError("a step of the store is open: write through it (step.write), or end it first")

    def __copy__(self) -> KvPlane:
        """A plane of its own: the buffers are copied too."""
        return deepcopy(self)

    def snapshot(self) -> PlaneSnapshot:
        """The live rows in logical order, apart from this plane (§15.6)."""
        return PlaneSnapshot(
            self.keys(),
            self.values(),
            capacity=self.capacity,
            origin_logical=self.origin_logical,
            head_major=self.head_major,
        )

    @classmethod
    def restore(
        cls, snapshot: PlaneSnapshot, rotation: int | None = None, backend: str | None = None
    ) -> KvPlane:
        """A new plane with a snapshot's rows, bit for bit; rows outside are zero (§15.6).

        Logical row ``i`` goes to row ``(rotation + i) % capacity``. The default
        rotation is the snapshot's ``origin_logical % capacity``; another one
        installs the same rows elsewhere. InputError outside ``0 .. capacity - 1``.
        """
        rotation = (
            snapshot.rotation if rotation is None else whole("rotation", rotation, 0, snapshot.capacity - 1)
        )
        ring = Ring(
            snapshot.capacity,
            len=snapshot.len,
            origin_logical=snapshot.origin_logical,
            origin_physical=rotation,
        )
        plane = cls.__new__(cls)
        key, value = (_installed(rows, snapshot.layout, ring) for rows in (snapshot.keys, snapshot.values))
        plane._build(snapshot.layout, ring, key, value, backend)
        return plane

    def reservation_undo(self, position: int, count: int, layer: int | None = None) -> Undo:
        """Check an append of ``count`` tokens and name what it would overwrite; changes nothing."""
        ring = self._ring.copy()
        position, count = span(position, count)
        reserved = ring.append_batch(position, count, layer)
        first = ring.next_position - reserved.source_count
        rows = (
            spans(ring.physical(first), reserved.source_count, self.capacity) if reserved.source_count else ()
        )
        buffers = (self.key_cache, self.value_cache)
        parts = tuple((buffer, self.layout.index(r)) for buffer in buffers for r in rows)
        return Undo(self._ring.copy(), parts)

    def undo(self, before: Undo) -> None:
        """Put back the rows and the origins that ``before`` holds."""
        self.device.write(
            [
                (buffer, index, held)
                for (buffer, index), held in zip(before.parts, before.contents, strict=True)
            ]
        )
        self._ring = before.ring.copy()

    def __repr__(self) -> str:
        return (
            f"KvPlane({self.layout.name}, capacity={self.capacity}, len={self.len}, "
            f"origin_logical={self.origin_logical}, origin_physical={self.origin_physical}, "
            f"backend={self.backend})"
        )


def _by_head(rows: F16, layout: Layout) -> F16:
    """Rows in a plane's own layout as ``(n_kv_heads, n, head_dim)``."""
    if layout.head_major:
        return rows
    return rows.reshape(-1, layout.n_kv_heads, layout.head_dim).transpose(1, 0, 2)


def _installed(rows: F16, layout: Layout, ring: Ring) -> F16:
    """A zeroed buffer with logical rows copied in as spans: the head, then the tail (§15.6)."""
    buffer = np.zeros(layout.shape, np.float16)
    done = 0
    for live in ring.live_spans():
        count = live.stop - live.start
        _by_head(buffer[layout.index(live)], layout)[:] = rows[:, done : done + count]
        done += count
    return buffer
