"""The planes of a store as mlx-lm caches: the model's code writes and reads them (§15.10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import mlx.core as mx

from muser_viz.checks import POSITION_LIMIT, whole
from muser_viz.devices.mlx_gpu import MlxDevice
from muser_viz.devices.protocol import Kind
from muser_viz.errors import ContextExhausted, InputError
from muser_viz.model.gpu_reading import GpuReading
from muser_viz.model.host_reading import HostReading
from muser_viz.model.reading import KINDS, Reading
from muser_viz.ring import Ring
from muser_viz.store import KvStore

_BEGIN = (9, 25)
"""While the first nine run, those up to the second are queued, and while these run, the rest.

MLX on CUDA sends work off in CUDA graphs, of some 2.2 layers at Muse Glimmer's widths. One
of these ends right before layer 9 anyway: to begin there cuts none short.
"""
_DTYPES = {kind: dtype for dtype, kind in KINDS.items()}


class PlaneCache:
    """One layer's plane, with the methods that mlx-lm asks of a cache (§15.10).

    The model calls ``update_and_fetch(keys, values)``; ``offset`` is the next
    position. A store kernel writes every row, rounded from the model's type to f16;
    what is handed back is in the model's own type again.
    """

    # slots, here and in what it calls: once a layer and token every attribute is read from cold memory
    __slots__ = ("_begins", "_device", "_kind", "_one_token", "_reads", "layer", "plane", "store")

    def __init__(self, store: KvStore, layer: int, begins: bool = False) -> None:
        """``begins``: a GPU begins with what is queued so far when this layer is, where it can gain by it."""
        self.store = store
        self.layer = whole("layer", layer, 0, store.geometry.n_layers - 1)
        self.plane = store.planes[self.layer]
        """The plane."""
        geometry = store.geometry
        self._one_token = (1, geometry.n_kv_heads, 1, geometry.head_dim)
        self._begins = begins
        self._kind: Kind = "float16"
        self._open()

    def _open(self) -> None:
        """Take the reading that goes with the plane's device."""
        plane, device = self.plane, self.plane.device
        self._device = device
        self._reads: Reading
        if isinstance(device, MlxDevice):
            self._reads = GpuReading(plane, device, self.store.max_context, self._begins)
        else:
            self._reads = HostReading(plane, last=self.layer == self.store.geometry.n_layers - 1)

    def _reading(self) -> Reading:
        """The plane's reading; another where the plane has been given another device since."""
        if self._device is not self.plane.device:
            self._open()
        return self._reads

    @property
    def offset(self) -> Any:
        """The next token position; RoPE turns by it.

        An int. On a GPU an int32 ``mlx.core.array``, ``()``, so that RoPE's kernels need
        not fetch an int from the host's memory; ``int(cache.offset)`` is the number.
        """
        return self._reads.offset

    def update_and_fetch(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Store the K and V of the next tokens and return what their queries read.

        ``keys`` and ``values``: MLX arrays, f32, f16 or bf16, ``(1, n_kv_heads, n,
        head_dim)``; values of another type than the keys are cast to theirs first.
        Returned: arrays of that type. One token, or a chunk that fits:
        the live rows in physical order. A chunk that overwrites rows its queries see:
        up to ``capacity - 1`` earlier rows and the chunk, staged in temporal order
        (§15.9). InputError, ContextExhausted: then nothing was changed.
        """
        if self.layer and not self.plane.held:  # layer 0 asks where the others are
            pair = self._reads.again(keys, values)
            if pair is not None:
                return pair
        shape = keys.shape
        if shape != self._one_token or values.shape != shape:
            self._check_shapes(shape, values.shape)
        kind = self._kind
        dtype = _DTYPES[kind]
        if not (keys.dtype == dtype and values.dtype == dtype):
            kind, values = _of_one_kind(keys, values)
        count, store = shape[2], self.store
        if (
            self.layer == 0
            or store.open_step is not None
            or self.plane.next_position + count > store.max_context
        ):
            self._check_position(count)
        self._kind = kind
        reading = self._reading()
        if count == 1:
            return reading.one(keys, values, kind)
        return reading.chunk(keys, values, kind, self._staged(count))

    def _check_shapes(self, keys: tuple[int, ...], values: tuple[int, ...]) -> None:
        plane = self.plane
        if keys != values or len(keys) != 4 or keys[0] != 1 or keys[2] < 1:
            raise InputError(
                f"keys are {tuple(keys)} and values {tuple(values)}; "
                "give (1, n_kv_heads, n, head_dim) of both: one session"
            )
        if keys[1] != plane.n_kv_heads or keys[3] != plane.head_dim:
            raise InputError(
                f"keys have {keys[1]} heads of {keys[3]} and the plane {plane.n_kv_heads} of "
                f"{plane.head_dim}: make the store with the model's own geometry"
            )
        rows = keys[2] + min(plane.len, plane.capacity - 1)
        if rows * plane.kv_dim >= POSITION_LIMIT:
            raise InputError(
                f"a chunk of {keys[2]} rows and those that it sees have 2**32 elements or more: split it"
            )

    def _staged(self, count: int) -> bool:
        """Whether a chunk's queries lose rows of the plane as it lies, or would not see them in order."""
        plane = self.plane
        return plane.len + count > plane.capacity or plane.origin_physical > 0

    def _check_position(self, count: int) -> None:
        """Whether the next tokens are what the store takes; a step that is open takes note of the layer."""
        position, store = self.plane.next_position, self.store
        if position + count > store.max_context:
            raise ContextExhausted(
                f"position {position + count - 1} is past max_context {store.max_context}; "
                "nothing was changed: make a store with a larger max_context"
            )
        if self.layer == 0 and store.positions != {position}:
            at = sorted(store.positions)
            raise InputError(
                f"layers are at positions {at[0]} to {at[-1]}: an earlier call of the model ended half way, "
                "or some layers alone were trimmed: load the last save, or reset every plane"
            )
        step = store.open_step
        if step is None:
            return
        if (step.position, step.count) != (position, count):
            raise InputError(
                f"{count} tokens from {position} were given; the open step is of {step.count} from "
                f"{step.position}: open a step for what the model is given"
            )
        step.claim(self.layer)

    def keys_and_values(self) -> tuple[Any, Any]:
        """The live rows in physical order, in the type last stored."""
        if self.empty():
            raise InputError("the plane holds no token: give the model one first")
        return self._reading().live(self._kind)

    def make_mask(self, N: int, window_size: int | None = None, return_array: bool = False) -> Any:  # noqa: N803
        """The mask of ``N`` queries over what ``update_and_fetch`` will return.

        None for one token: each row that is read is seen. ``"causal"``, or a bool
        array ``(N, rows)`` where rows are staged. InputError for a window that is not
        the ring's, unless the ring holds the whole context.
        """
        plane = self.plane
        if (
            type(N) is int
            and N == 1
            and not return_array
            and (window_size is None or window_size == plane.capacity)
        ):
            return None
        count, offset = whole("N", N, 1), self.plane.next_position
        holds_all = plane.capacity >= self.store.max_context
        if window_size is not None and window_size != plane.capacity and not holds_all:
            raise InputError(
                f"a window of {window_size} was asked for; layer {self.layer} is a ring of {plane.capacity} "
                "rows: make the store with sliding_window as the model has it"
            )
        if window_size is not None and holds_all and offset + count > window_size:
            raise InputError(
                f"position {offset + count - 1} is past a window of {window_size}, and layer {self.layer} "
                f"keeps all {plane.capacity} rows: make the store with sliding_window={window_size}"
            )
        if count == 1 and not return_array:
            return None
        staged = count > 1 and plane.len + count > plane.capacity
        if not staged and not return_array:
            return "causal"
        before = min(offset, plane.capacity - 1) if staged else min(offset, plane.capacity - count)
        query = mx.arange(before, before + count)[:, None]
        row = mx.arange(before + count)[None]
        seen = query >= row
        return seen & (query < row + plane.capacity) if staged else seen

    def size(self) -> int:
        """Live rows."""
        return self.plane.len

    def empty(self) -> bool:
        """Whether no row is live."""
        return self.size() == 0

    @property
    def nbytes(self) -> int:
        """Bytes of the plane, and of the copy that attention reads, where one is kept."""
        return self.plane.nbytes + self._reading().copy_nbytes

    @property
    def state(self) -> list[Any]:
        """What ``mx.eval`` waits for before the next chunk: MLX's arrays of what was stored."""
        return self._reading().arrays

    @state.setter
    def state(self, given: Any) -> NoReturn:  # noqa: ARG002
        raise InputError(
            "a state was set; a plane takes rows from its kernels or from a snapshot: KvStore.load(folder)"
        )

    @property
    def meta_state(self) -> tuple[str, ...]:
        """Capacity, len and both origins, as text."""
        return tuple(map(str, self.plane.state))

    def is_trimmable(self) -> bool:
        """Whether the newest tokens can be taken back: until the ring overwrites a row."""
        return self.plane.origin_logical == 0

    def trim(self, n: int) -> int:
        """Take back the newest ``n`` tokens, at most all; how many it was.

        InputError once the ring has overwritten a row: the window of an earlier token
        holds tokens that are gone. Then nothing was changed.
        """
        plane = self.plane
        count = min(whole("n", n, 0), plane.next_position)
        if count and not self.is_trimmable():
            newest = plane.next_position - count - 1
            raise InputError(
                f"{count} tokens were to be taken back; the window of token {newest} begins at "
                f"{max(0, newest - plane.capacity + 1)}, and tokens before {plane.origin_logical} "
                f"are overwritten in layer {self.layer}: load an earlier save, or prefill again"
            )
        if count:
            rest = Ring(plane.capacity, len=plane.len - count, origin_physical=plane.origin_physical)
            self._reading().trim(rest)
        return count

    def to_quantized(self, group_size: int = 64, bits: int = 4) -> NoReturn:
        """Refused: planes are f16 (§15.8)."""
        raise InputError(
            f"{bits} bits in groups of {group_size} were asked for; planes are f16: leave kv_bits out"
        )

    def __repr__(self) -> str:
        return f"PlaneCache(layer {self.layer}, {self.plane.ring!r})"


def _of_one_kind(keys: Any, values: Any) -> tuple[Kind, Any]:
    """What the keys are of, and the values in their type."""
    for dtype in (keys.dtype, values.dtype):
        if dtype not in KINDS:
            raise InputError(
                f"keys are {keys.dtype} and values {values.dtype}; float32, float16 and bfloat16 are stored"
            )
    return KINDS[keys.dtype], values.astype(keys.dtype)


def model_caches(store: KvStore, begin: Sequence[int] = _BEGIN) -> list[PlaneCache]:
    """A cache for each plane of ``store``, to be given to the model: ``model(tokens, cache=...)`` (§15.10).

    ``begin``: layers with which a GPU begins to work on what is queued so far, while the
    next ones are being queued; it begins once more when the model's output is asked for.
    With a token only where the calling thread waited since the last one: a GPU that runs a
    model faster than Python queues it would gain nothing.
    InputError for what is no whole number, and while a step is open.
    """
    if store.open_step is not None:
        raise InputError("a step of the store is open: make the caches before it, or after")
    begins = {whole("begin", layer, 0) for layer in begin}
    return [PlaneCache(store, layer, layer in begins) for layer in range(store.geometry.n_layers)]


def positions(caches: Sequence[Any]) -> int:
    """The next position of caches that stand at one; InputError where they do not."""
    at = {int(cache.offset) for cache in caches}
    if len(at) != 1:
        raise InputError(f"the caches are at positions {sorted(at)}; give caches of one session")
    return at.pop()
