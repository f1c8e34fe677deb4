"""A plane of a GPU under a model: everything stays in MLX's graph, nothing waits (§15.8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any
from weakref import WeakValueDictionary, ref

from muser_viz.devices.mlx_gpu import Launch, MlxDevice
from muser_viz.devices.protocol import Kind
from muser_viz.launches import Handed
from muser_viz.layout import Layout
from muser_viz.model.reading import Pair, Reading, next_token, stamp, without_room
from muser_viz.plane import KvPlane
from muser_viz.ring import Ring


class _InGraph:
    """Launches of a device, left in MLX's graph."""

    def __init__(self, device: MlxDevice) -> None:
        self._device = device

    def launch(self, name: str, grid: int, arguments: Sequence[Any], kind: Kind = "float32") -> list[Any]:
        return self._device.build(name, grid, arguments, kind)[0]


class _State:
    """What a plane in one state does with its next token; the planes in it share it.

    A model's 39 rings go from state to state together, so what is made for the first
    of them serves the others.
    """

    def __init__(self, device: MlxDevice, layout: Layout, ring: Ring, kind: Kind) -> None:
        self.ring, self.kind = ring, kind
        self._device, self._layout = device, layout
        self._ring_after, row, self.live = next_token(*ring.state)
        self._after: Callable[[], _State | None] = lambda: None
        shape = self.live.shape(layout)
        self.launch: Launch = device.prepared(
            "muser_kv_store_rows_f16",
            self.live.filled * layout.kv_dim,
            (*self.live.told(layout), row),
            (shape, shape),
            (True, True, False, False),
            kind,
        )

    def after(self) -> _State:
        """The state with the token stored."""
        after = self._after()
        if after is None:
            after = _state(self._device, self._layout, self._ring_after, self.kind)
            self._after = ref(after)
        return after


_states: WeakValueDictionary[tuple[MlxDevice, Layout, tuple[int, ...], Kind], _State] = WeakValueDictionary()


def _state(device: MlxDevice, layout: Layout, ring: Ring, kind: Kind) -> _State:
    """The one that planes share, as long as one of them is in it."""
    name = (device, layout, ring.state, kind)
    state = _states.get(name)
    if state is None:
        state = _states[name] = _State(device, layout, ring, kind)
    return state


class GpuReading(Reading):
    """The store kernel writes the plane in place; the same launch makes the arrays that attention reads."""

    def __init__(self, plane: KvPlane, device: MlxDevice) -> None:
        super().__init__(plane)
        self._device = device
        self._in_graph = _InGraph(device)
        self._state: _State | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> GpuReading:
        """Of the plane's copy."""
        return GpuReading(deepcopy(self.plane, memo), self._device)

    @property
    def _launcher(self) -> _InGraph:
        return self._in_graph

    @property
    def arrays(self) -> list[Any]:
        """The plane's fence: evaluated, every row is stored."""
        buffer: Any = self.plane.key_cache
        return [buffer.fence]

    def one(self, keys: Any, values: Any, kind: Kind) -> Pair:
        """Queue the store and the read of one token: a launch."""
        plane, state = self.plane, self._state
        if state is None or state.ring is not stamp(plane) or state.kind != kind:
            state = _state(self._device, plane.layout, plane.ring, kind)
        buffers: Any = plane.key_cache, plane.value_cache
        key, value = buffers
        key_rows, value_rows = state.launch([keys, values, key.array, value.array], buffers)
        self._state = after = state.after()
        plane.advance(after.ring)
        return without_room(key_rows, value_rows, state.live)

    def _given(self, arrays: Pair) -> Pair:
        return arrays

    def _taken(self, made: list[Any], kind: Kind, handed: Handed) -> Pair:  # noqa: ARG002
        key, value = made
        return without_room(key, value, handed)
