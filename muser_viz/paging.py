"""A paged store beside the ring: 16-token blocks behind a block table (§15.8)."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz import devices, launches
from muser_viz.checks import floats, whole
from muser_viz.errors import CacheDiscontinuity, ContextExhausted, NotLive
from muser_viz.layout import Layout

F16 = npt.NDArray[np.float16]
ENTRY_BYTES = 4
"""A table entry is a uint32: the pool's block."""


class PagedPlane:
    """One layer's K and V in blocks of ``block`` tokens from a pool of ``blocks`` (§15.8).

    ``window``: tokens that stay live; a block goes back to the pool once all its
    tokens have left. None: all stay. Blocks are taken in the order in which they
    became free. InputError for a number that is no whole number of at least 1;
    BackendUnavailable.
    """

    def __init__(
        self,
        blocks: int,
        window: int | None = None,
        block: int = 16,
        n_kv_heads: int = 2,
        head_dim: int = 128,
        backend: str | None = None,
    ) -> None:
        self.blocks = whole("blocks", blocks, 1)
        self.block = whole("block", block, 1)
        self.window = None if window is None else whole("window", window, 1)
        self.layout = Layout(self.blocks * self.block, n_kv_heads, head_dim)
        self.device = devices.device(backend)
        empty = np.zeros(self.layout.shape, np.float16)
        self.key_cache, self.value_cache = self.device.buffer(empty), self.device.buffer(empty)
        self.table: dict[int, int] = {}
        """The pool's block of each live block of the sequence."""
        self.next_position = 0
        self.taken = 0
        """Blocks taken from the pool so far."""
        self.evicted = 0
        """Blocks given back so far."""
        self.most_held = 0
        """The most blocks held at one time."""
        self._free = deque(range(self.blocks))

    @property
    def front(self) -> int:
        """The oldest live token, or 0."""
        return 0 if self.window is None else max(0, self.next_position - self.window)

    @property
    def nbytes(self) -> int:
        """Bytes of the pool, K and V."""
        return self.blocks * self.block_nbytes

    @property
    def block_nbytes(self) -> int:
        """Bytes of one block, K and V."""
        return 2 * self.block * self.layout.kv_dim * np.dtype(np.float16).itemsize

    @property
    def held_nbytes(self) -> int:
        """Bytes of the blocks held now, K and V."""
        return len(self.table) * self.block_nbytes

    @property
    def table_nbytes(self) -> int:
        """Bytes of the table's entries at their most."""
        return self.most_held * ENTRY_BYTES

    def row(self, position: int) -> int:
        """The pool's row of a live token, through the table; NotLive otherwise."""
        position = whole("position", position, 0)
        if not self.front <= position < self.next_position:
            raise NotLive(
                f"token {position} was asked for; {self.front} is the oldest live token and "
                f"{self.next_position} the next: ask for a live token"
            )
        return self.table[position // self.block] * self.block + position % self.block

    def append(self, position: int, key: Any, value: Any) -> int:
        """Store one token's K and V (f32, ``(kv_dim,)``) with ``muser_kv_store_f16``; its row of the pool.

        The token that leaves the window goes first. CacheDiscontinuity unless
        ``position`` is next; ContextExhausted where the pool has no block; InputError
        for another shape or dtype. Then nothing is changed.
        """
        position = whole("position", position, 0)
        if position != self.next_position:
            raise CacheDiscontinuity(None, self.next_position, position)
        key = floats("key", key, (self.layout.kv_dim,))
        value = floats("value", value, (self.layout.kv_dim,))
        gone = (
            [] if self.window is None else [b for b in self.table if self._last(b) <= position - self.window]
        )
        new = position // self.block
        if new not in self.table and not self._free and not gone:
            raise ContextExhausted(
                f"token {position} needs a block and all {self.blocks} are held: give the pool more blocks"
            )
        for each in gone:
            self._free.append(self.table.pop(each))
        self.evicted += len(gone)
        if new not in self.table:
            self.table[new] = self._free.popleft()
            self.taken += 1
        self.most_held = max(self.most_held, len(self.table))
        self.next_position += 1
        row = self.row(position)
        put, device = self.device.put, self.device
        launches.store(
            device, put(key), put(value), self.key_cache, self.value_cache, self.layout.kv_dim, row
        )
        return row

    def _last(self, block: int) -> int:
        return (block + 1) * self.block - 1

    def live_rows(self) -> npt.NDArray[np.int64]:
        """The pool's rows of the live tokens, oldest first: int64."""
        return np.array([self.row(p) for p in range(self.front, self.next_position)], np.int64)

    def keys(self) -> F16:
        """The live K rows, oldest first, a copy: f16, ``(n_kv_heads, len, head_dim)``."""
        return self._gathered(self.key_cache)

    def values(self) -> F16:
        """The live V rows, oldest first, a copy: f16, ``(n_kv_heads, len, head_dim)``."""
        return self._gathered(self.value_cache)

    def _gathered(self, buffer: Any) -> F16:
        pool = np.asarray(self.device.get(buffer)).reshape(self.layout.shape)
        rows = pool[self.live_rows()].reshape(-1, self.layout.n_kv_heads, self.layout.head_dim)
        return np.ascontiguousarray(rows.transpose(1, 0, 2))
