"""Many rows of a GPU's plane in MLX's memory: a token's own is put among them (§15.6)."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from muser_viz.model.reading import State


class KeptRows:
    """The live rows of a plane, in order, for one token after another; zeros at the end.

    Copying all of them for each token takes longer, the longer the context; MLX puts a
    row into its place where nothing else reads the arrays any more.
    """

    def __init__(self, pair: list[Any]) -> None:
        """``pair``: K and V, ``(1, n_kv_heads, room, head_dim)``."""
        self._pair = pair
        self._as_of: tuple[Any, Any] = None, None

    @property
    def nbytes(self) -> int:
        """Bytes of both."""
        return sum(int(rows.nbytes) for rows in self._pair)

    def goes_on(self, fence: Any, state: State, row: Any) -> bool:
        """Whether a plane with this fence, in this state, lacks nothing here but ``row``, in its type."""
        kept, before = self._as_of
        return kept is fence and before == state and bool(self._pair[0].dtype == row.dtype)

    def as_of(self, fence: Any, state: State) -> None:
        """With another fence other rows may have been stored, in another state fewer are live."""
        self._as_of = fence, state

    def put(self, row: int, room: int, made: list[Any]) -> None:
        """Put a token's K and V into ``row`` of arrays with ``room`` rows."""
        *heads, before, dim = self._pair[0].shape
        if before < room:
            more = mx.zeros((*heads, room - before, dim), self._pair[0].dtype)
            self._pair = [mx.concatenate([rows, more], axis=2) for rows in self._pair]
        for rows, new in zip(self._pair, made, strict=True):
            rows[:, :, row : row + 1] = new

    def handed(self) -> list[Any]:
        """Both, as objects of their own: a user may assign to what they are given."""
        return [rows[...] for rows in self._pair]
