"""Tokens that planes of a GPU will be given, prepared before they come (§15.8)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

import mlx.core as mx

from muser_viz.devices.mlx_gpu import Launch, MlxDevice, in_words, stepped
from muser_viz.devices.protocol import Kind
from muser_viz.launches import Handed
from muser_viz.layout import Layout
from muser_viz.model.reading import NextToken, State, next_token
from muser_viz.ring import Ring

_MANY = 1 << 22
"""Elements of K from which a launch hands over the token's row alone, to be put among kept ones."""
_AHEAD = 64
"""Tokens prepared together, from the second in a row: code that runs once a token runs from cold caches."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Token:
    """What a plane in one state does with its next token."""

    before: Ring
    """The state."""
    position: Any
    """The token's, as ``position_on_gpu`` has it."""
    after: Ring
    row: int
    """Where the token is stored."""
    live: Handed
    """The rows that its query reads."""
    alone: bool
    """Whether the launch hands over the token's row alone."""
    launch: Launch
    scalars: tuple[int, ...]
    words: Any
    """The scalars as an array."""
    next: Token | None = None
    """The one after it, where it is prepared."""


def _prepared(
    device: MlxDevice, layout: Layout, ring: Ring, kind: Kind, limit: int, last: Token | None
) -> Token:
    """The next token of a plane in a state, and those after it.

    Their scalars are queued at once: a lazy array of MLX would belong to its thread.
    """
    rings, steps = [ring], list[NextToken]()
    for _ in range(max(1, min(_AHEAD, limit - ring.next_position)) if last else 1):
        steps.append(next_token(rings[-1]))
        rings.append(steps[-1].ring)
    alone = [step.live.old * layout.kv_dim >= _MANY and _in_place(step.live) for step in steps]
    told = [
        (Handed((slice(step.row, step.row + 1),)) if one else step.live).launch(layout, step.row)
        for step, one in zip(steps, alone, strict=True)
    ]
    scalars = [each for _, each, _ in told]
    words = stepped(last.words, last.scalars, scalars) if last else [in_words(scalars)]
    name, in_place = "muser_kv_store_rows_f16", (True, True, False, False)
    takes = (1, layout.n_kv_heads, 1, layout.head_dim)
    token: Token | None = None
    for n in reversed(range(len(told))):
        (grid, _, outputs), (after, row, live) = told[n], steps[n]
        # of a full ring only the row changes: a constant is not waited for on the GPU
        fixed = scalars[n][:-1] if live.old == layout.capacity and not alone[n] else ()
        launch = device.repeated(name, grid, outputs, in_place, kind, takes, fixed)
        position = position_on_gpu(rings[n].next_position)
        token = Token(rings[n], position, after, row, live, alone[n], launch, scalars[n], words[n], token)
    mx.async_eval(words)  # type: ignore[no-untyped-call]
    assert token
    return token


def _in_place(live: Handed) -> bool:
    """Whether row ``i`` of what is handed over is the plane's row ``i``."""
    return live.places == (slice(0, live.old),)


_coming: WeakValueDictionary[tuple[MlxDevice, Layout, State, Kind, int], Token] = WeakValueDictionary()


def coming(
    device: MlxDevice, layout: Layout, ring: Ring, kind: Kind, limit: int, last: Token | None
) -> Token:
    """The next token of a plane in a state; after a ``last`` one, those after it are prepared too.

    Positions end before ``limit``. A model's 39 rings go from state to state together, so
    what is made for the first of them serves the others.
    """
    name = (device, layout, ring.state, kind, limit)
    token = _coming.get(name)
    if token is None:
        token = _coming[name] = _prepared(device, layout, ring, kind, limit, last)
    return token


def position_on_gpu(position: int) -> Any:
    """A position as an int32 array, ``()``, in the GPU's memory; an int as it is from 2**31 on.

    An int that MLX on CUDA is handed goes into memory of the host's, which a kernel then
    waits for. The array is shared: a user is given another object.
    """
    if position >= 1 << 31:
        return position
    nth, place = divmod(position, _AHEAD)
    return _positions(nth, _AHEAD)[place]


@lru_cache(maxsize=64)
def _positions(nth: int, count: int) -> list[Any]:
    positions = list(mx.arange(nth * count, (nth + 1) * count, dtype=mx.int32))
    mx.async_eval(positions)  # type: ignore[no-untyped-call]
    return positions
