"""A plane of a GPU under a model: everything stays in MLX's graph, nothing waits (§15.8)."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import lru_cache
from threading import get_ident
from typing import Any, NamedTuple
from weakref import WeakValueDictionary, ref

import mlx.core as mx

from muser_viz.devices.mlx_gpu import FencedBuffer, Launch, MlxDevice
from muser_viz.devices.protocol import Kind
from muser_viz.launches import Handed, told_batch
from muser_viz.layout import Layout
from muser_viz.model.reading import (
    Pair,
    State,
    live_places,
    next_chunk,
    next_token,
    rows,
    stamp,
    without_room,
)
from muser_viz.plane import KvPlane
from muser_viz.ring import Ring


class _Token:
    """What a plane in one state does with its next token; the planes in it share it.

    A model's 39 rings go from state to state together, so what is made for the first
    of them serves the others, in one thread: a lazy array of MLX belongs to its own.
    """

    def __init__(
        self, device: MlxDevice, layout: Layout, ring: Ring, kind: Kind, before: Launch | None
    ) -> None:
        self.kind, self.thread = kind, get_ident()
        self._device, self._layout = device, layout
        self.ring_after, row, self.live = next_token(ring.state)
        self._after: Callable[[], _Token | None] = lambda: None
        told, in_place = self.live.launch(layout, row), (True, True, False, False)
        self.launch = Launch(device, "muser_kv_store_rows_f16", *told, in_place, kind, before)

    def goes_on(self, kind: Kind) -> bool:
        """Whether the next token can follow on this one: of this kind, in this thread."""
        return self.kind == kind and self.thread == get_ident()

    def after(self) -> _Token:
        """The same of the state with the token stored."""
        after = self._after()
        if after is None:
            after = _token(self._device, self._layout, self.ring_after, self.kind, self.launch)
            self._after = ref(after)
        return after


_tokens: WeakValueDictionary[tuple[MlxDevice, Layout, State, Kind, int], _Token] = WeakValueDictionary()


def _token(device: MlxDevice, layout: Layout, ring: Ring, kind: Kind, before: Launch | None = None) -> _Token:
    """The one that planes share, as long as one of them is in its state. ``before``: the last token's."""
    name = (device, layout, ring.state, kind, get_ident())
    token = _tokens.get(name)
    if token is None:
        token = _tokens[name] = _Token(device, layout, ring, kind, before)
    return token


class _Chunk(NamedTuple):
    """What a plane in one state does with its next chunk."""

    ring: Ring
    store: Launch
    hand: Launch
    handed: Handed


@lru_cache(maxsize=64)
def _chunk(device: MlxDevice, layout: Layout, state: State, count: int, staged: bool, kind: Kind) -> _Chunk:
    ring, reserved, handed = next_chunk(state, count, staged)
    threads, told = reserved.source_count * layout.kv_dim, told_batch(layout, reserved)
    store = device.prepared("muser_kv_store_batch_f16", threads, told, (), (True, True), kind)
    return _Chunk(ring, store, _hand(device, layout, handed, kind), handed)


def _hand(device: MlxDevice, layout: Layout, handed: Handed, kind: Kind) -> Launch:
    """A launch that hands rows over into arrays made for them."""
    return device.prepared("muser_kv_rows_f16", *handed.launch(layout, handed.old), (False, False), kind)


class GpuReading:
    """The store kernel writes the plane in place; the same launch makes the arrays that attention reads."""

    copy_nbytes = 0

    def __init__(self, plane: KvPlane, device: MlxDevice) -> None:
        self.plane = plane
        self._device = device
        self._last: _Token | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> GpuReading:
        """Of the plane's copy."""
        return GpuReading(deepcopy(self.plane, memo), self._device)

    @property
    def _buffers(self) -> tuple[FencedBuffer, FencedBuffer]:
        return self.plane.key_cache, self.plane.value_cache  # type: ignore[return-value]

    @property
    def arrays(self) -> list[Any]:
        """The plane's fence: evaluated, every row is stored."""
        return [self._buffers[0].fence]

    def one(self, keys: Any, values: Any, kind: Kind) -> Pair:
        """Queue the store and the read of one token: a launch."""
        plane, last, buffers = self.plane, self._last, self._buffers
        if last is not None and last.ring_after is stamp(plane) and last.goes_on(kind):
            token = last.after()
        else:
            token = _token(self._device, plane.layout, plane.ring, kind)
        key, value = token.launch([keys, values, buffers[0].array, buffers[1].array], buffers)
        plane.advance(token.ring_after)
        self._last = token
        return without_room(key, value, token.live)

    def chunk(self, keys: Any, values: Any, kind: Kind, staged: bool) -> Pair:
        """Queue the store of a chunk, and the read: before it where rows are staged, else after it."""
        plane, buffers = self.plane, self._buffers
        chunk = _chunk(self._device, plane.layout, plane.state, keys.shape[2], staged, kind)
        inputs = [rows(keys), rows(values), buffers[0].array, buffers[1].array]
        made = chunk.hand(inputs, buffers) if staged else []
        chunk.store(inputs, buffers)
        plane.advance(chunk.ring)
        key, value = made or chunk.hand(inputs, buffers)
        return key, value

    def live(self, kind: Kind) -> Pair:
        """The live rows in ascending physical order."""
        buffers, nothing = self._buffers, mx.zeros((8,), getattr(mx, kind))
        hand = _hand(self._device, self.plane.layout, Handed(live_places(self.plane.ring)), kind)
        key, value = hand([nothing, nothing, buffers[0].array, buffers[1].array], buffers)
        return key, value

    def trim(self, ring: Ring) -> None:
        """Take a state with fewer live rows."""
        self.plane.advance(ring)
