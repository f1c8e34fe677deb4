"""A plane of a GPU under a model: everything stays in MLX's graph, nothing waits (§15.8)."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import mlx.core as mx

from muser_viz.checks import POSITION_LIMIT
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

_FEW = 1 << 19
"""Elements of K up to which a plane keeps the rows last handed over: a launch with a fence takes longer."""
_AHEAD = 16
"""Tokens prepared together, from the second in a row: code that runs once a token runs from cold caches."""


class _Token(NamedTuple):
    """What a plane in one state does with its next token."""

    before: Ring
    """The state."""
    after: Ring
    live: Handed
    launch: Launch
    outputs: tuple[tuple[int, ...], ...]
    kind: Kind


class _Run:
    """The next tokens of a plane in one state; the planes in it share them.

    A model's 39 rings go from state to state together, so what is made for the first
    of them serves the others. Their scalars are queued at once: a lazy array of MLX
    would belong to its thread.
    """

    def __init__(
        self, device: MlxDevice, layout: Layout, ring: Ring, kind: Kind, last: _Token | None
    ) -> None:
        """``last``: the token before these; where there is none, one is prepared."""
        self.tokens: list[_Token] = []
        for _ in range(max(1, min(_AHEAD, POSITION_LIMIT - ring.next_position)) if last else 1):
            after, row, live = next_token(ring)
            grid, words, outputs = live.launch(layout, row)
            if last is not None and last.outputs == outputs:
                launch = last.launch.again(words)
            else:
                name, in_place = "muser_kv_store_rows_f16", (True, True, False, False)
                fence = prod(outputs[0]) > _FEW
                before = last and last.launch
                launch = Launch(device, name, grid, words, outputs, in_place, kind, fence, before)
            last = _Token(ring, after, live, launch, outputs, kind)
            self.tokens.append(last)
            ring = after
        mx.async_eval([token.launch.words for token in self.tokens])  # type: ignore[no-untyped-call]


_runs: WeakValueDictionary[tuple[MlxDevice, Layout, State, Kind], _Run] = WeakValueDictionary()


def _run(device: MlxDevice, layout: Layout, ring: Ring, kind: Kind, last: _Token | None) -> _Run:
    """The one that planes share, as long as one of them is in it."""
    name = (device, layout, ring.state, kind)
    run = _runs.get(name)
    if run is None:
        run = _runs[name] = _Run(device, layout, ring, kind, last)
    return run


class _Chunk(NamedTuple):
    """What a plane in one state does with its next chunk."""

    ring: Ring
    store: Launch
    hand: Launch


@lru_cache(maxsize=64)
def _chunk(device: MlxDevice, layout: Layout, state: State, count: int, staged: bool, kind: Kind) -> _Chunk:
    ring, reserved, handed = next_chunk(state, count, staged)
    threads, told = reserved.source_count * layout.kv_dim, told_batch(layout, reserved)
    store = device.prepared("muser_kv_store_batch_f16", threads, told, (), (True, True), kind)
    return _Chunk(ring, store, _hand(device, layout, handed, kind))


def _hand(device: MlxDevice, layout: Layout, handed: Handed, kind: Kind) -> Launch:
    """A launch that hands rows over into arrays made for them."""
    return device.prepared("muser_kv_rows_f16", *handed.launch(layout, handed.old), (False, False), kind)


class GpuReading:
    """The store kernel writes the plane in place; the same launch makes the arrays that attention reads."""

    def __init__(self, plane: KvPlane, device: MlxDevice) -> None:
        self.plane = plane
        self._device = device
        self._run: _Run | None = None
        self._coming: Iterator[_Token] = iter(())
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

    @property
    def copy_nbytes(self) -> int:
        """Bytes of the rows that are kept as the fence, where they are."""
        fence = self._buffers[0].fence
        return int(fence.nbytes) if fence.size > 1 else 0

    def one(self, keys: Any, values: Any, kind: Kind) -> Pair:
        """Queue the store and the read of one token: a launch."""
        plane = self.plane
        token = next(self._coming, None)
        if token is None or token.before is not stamp(plane) or token.kind != kind:
            token = self._first(kind)
        buffers: Any = plane.key_cache, plane.value_cache
        key, value = token.launch([keys, values, buffers[0].array, buffers[1].array], buffers)
        plane.advance(token.after)
        self._last = token
        return without_room(key, value, token.live)

    def _first(self, kind: Kind) -> _Token:
        """The token of the plane's state, and those that come after it prepared."""
        plane, last = self.plane, self._last
        if last is not None and (last.after is not stamp(plane) or last.kind != kind):
            last = None
        self._run = _run(self._device, plane.layout, plane.ring, kind, last)
        self._coming = iter(self._run.tokens)
        return next(self._coming)

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
