"""A plane of a GPU under a model: everything stays in MLX's graph, nothing waits (§15.8)."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import lru_cache, partial
from typing import Any, NamedTuple

import mlx.core as mx

from muser_viz.checks import POSITION_LIMIT
from muser_viz.devices.mlx_gpu import FencedBuffer, MlxDevice, in_words
from muser_viz.devices.protocol import Kind
from muser_viz.launches import Handed, told_batch
from muser_viz.layout import Layout
from muser_viz.model.gpu_tokens import Token, coming, position_on_gpu
from muser_viz.model.kept_rows import KeptRows
from muser_viz.model.reading import KINDS, Pair, State, live_places, next_chunk, rows, stamp, without_room
from muser_viz.model.waits import Waits
from muser_viz.plane import KvPlane
from muser_viz.ring import Ring

_queue: Any = mx.async_eval
_Queued = Callable[[list[Any], tuple[FencedBuffer, FencedBuffer]], list[Any]]


class _Chunk(NamedTuple):
    """What a plane in one state does with its next chunk."""

    ring: Ring
    store: _Queued
    hand: _Queued


@lru_cache(maxsize=64)
def _chunk(device: MlxDevice, layout: Layout, state: State, count: int, staged: bool, kind: Kind) -> _Chunk:
    ring, reserved, handed = next_chunk(state, count, staged)
    threads, told = reserved.source_count * layout.kv_dim, told_batch(layout, reserved)
    store = device.prepared("muser_kv_store_batch_f16", threads, (), (True, True), kind)
    return _Chunk(ring, partial(store, in_words([told])), _hand(device, layout, handed, kind))


def _hand(device: MlxDevice, layout: Layout, handed: Handed, kind: Kind) -> _Queued:
    """A launch that hands rows over into arrays made for them."""
    grid, told, outputs = handed.launch(layout, handed.old)
    launch = device.prepared("muser_kv_rows_f16", grid, outputs, (False, False), kind)
    return partial(launch, in_words([told]))


class GpuReading:
    """The store kernel writes the plane in place; the same launch makes the arrays that attention reads.

    Of many rows it makes the token's alone, which goes among rows that are kept.
    """

    __slots__ = ("_begins", "_device", "_kept", "_last", "_limit", "_waits", "plane")

    def __init__(
        self, plane: KvPlane, device: MlxDevice, limit: int = POSITION_LIMIT, begins: bool = False
    ) -> None:
        """``limit``: positions end before it.

        ``begins``: the GPU begins with what is queued so far when this plane's rows are, with
        a token where the thread waits between tokens. It would have nothing to do until a
        model's last layer is queued.
        """
        self.plane = plane
        self._device = device
        self._limit = limit
        self._begins = begins
        self._waits = Waits()
        self._last: Token | None = None
        """The last token, which knows the next one."""
        self._kept: KeptRows | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> GpuReading:
        """Of the plane's copy."""
        return GpuReading(deepcopy(self.plane, memo), self._device, self._limit, self._begins)

    @property
    def _buffers(self) -> tuple[FencedBuffer, FencedBuffer]:
        return self.plane.key_cache, self.plane.value_cache  # type: ignore[return-value]

    @property
    def offset(self) -> Any:
        """The next position, in the GPU's memory."""
        plane, last = self.plane, self._last
        token = last and last.next
        if token and token.before is stamp(plane):
            at = token.position
        else:
            at = position_on_gpu(plane.next_position)
        return at if type(at) is int else at[...]  # an object of its own: a user may add to it in place

    @property
    def arrays(self) -> list[Any]:
        """The plane's fence: evaluated, every row is stored."""
        return [self._buffers[0].fence]

    @property
    def copy_nbytes(self) -> int:
        """Bytes of the rows that are kept, as the fence or for the next token."""
        fence = self._buffers[0].fence
        kept = 0 if self._kept is None else self._kept.nbytes
        return kept + (int(fence.nbytes) if fence.size > 1 else 0)

    def again(self, keys: Any, values: Any) -> Pair | None:
        """Queue the store and the read of one token, a launch; None where none is prepared for it.

        Once a layer and token, amid all of a model: so what is looked at is little.
        """
        plane, last = self.plane, self._last
        token = last and last.next
        if not token or plane.device is not self._device:
            return None
        key_cache: Any = plane.key_cache
        value_cache: Any = plane.value_cache
        before = key_cache.fence
        if token.before is not stamp(plane) or value_cache.fence is not before:
            return None
        try:
            made = token.launch.queue(keys, values, key_cache.given, value_cache.given, token.words, before)
        except ValueError:  # MLX's, where one is no array
            return None
        if not made:
            return None
        key_cache.fence = value_cache.fence = made.pop()
        return self._handed(token, made, before)

    def one(self, keys: Any, values: Any, kind: Kind) -> Pair:
        """Queue the store and the read of one token, prepared before or now."""
        pair = self.again(keys, values)
        if pair is not None:
            return pair
        plane, last, buffers = self.plane, self._last, self._buffers
        goes_on = last and last.after is stamp(plane)
        token = coming(self._device, plane.layout, plane.ring, kind, self._limit, last if goes_on else None)
        before = buffers[0].fence if buffers[0].fence is buffers[1].fence else None
        made = token.launch(token.words, [keys, values, buffers[0].given, buffers[1].given], buffers)
        if not token.alone:
            self._kept = None
        return self._handed(token, made, before)

    def _handed(self, token: Token, made: list[Any], before: Any) -> Pair:
        """The rows that the token's query reads. ``before``: the fence before its launch."""
        self._last = token
        self.plane.advance(token.after)
        key, value = self._among(token, made, before) if token.alone else made
        if self._begins and self._waits():
            _queue(self.arrays)
        return without_room(key, value, token.live.cut)

    def _among(self, token: Token, made: list[Any], before: Any) -> list[Any]:
        """The rows that are kept, the token's own among them."""
        kept, buffers = self._kept, self._buffers
        if kept is not None and kept.goes_on(before, token.before.state, made[0]):
            kept.put(token.row, token.live.filled, made)
        else:
            hand = _hand(self._device, self.plane.layout, token.live, KINDS[made[0].dtype])
            kept = self._kept = KeptRows(hand([*made, buffers[0].given, buffers[1].given], buffers))
        kept.as_of(buffers[0].fence, token.after.state)
        return kept.handed()

    def chunk(self, keys: Any, values: Any, kind: Kind, staged: bool) -> Pair:
        """Queue the store of a chunk, and the read: before it where rows are staged, else after it."""
        self._kept = None
        plane, buffers = self.plane, self._buffers
        chunk = _chunk(self._device, plane.layout, plane.state, keys.shape[2], staged, kind)
        inputs = [rows(keys), rows(values), buffers[0].given, buffers[1].given]
        made = chunk.hand(inputs, buffers) if staged else []
        chunk.store(inputs, buffers)
        plane.advance(chunk.ring)
        key, value = made or chunk.hand(inputs, buffers)
        if self._begins:
            _queue(self.arrays)
        return key, value

    def live(self, kind: Kind) -> Pair:
        """The live rows in ascending physical order."""
        buffers, nothing = self._buffers, mx.zeros((8,), getattr(mx, kind))
        hand = _hand(self._device, self.plane.layout, Handed(live_places(self.plane.ring)), kind)
        key, value = hand([nothing, nothing, buffers[0].given, buffers[1].given], buffers)
        return key, value

    def trim(self, ring: Ring) -> None:
        """Take a state with fewer live rows."""
        self.plane.advance(ring)
