"""Many rows of a GPU's plane in MLX's memory: a token's own is put among them (§15.6)."""

from __future__ import annotations

from typing import Any

import mlx.core as mx


class KeptRows:
    """Every row of a plane, in order, for one token after another.

    Copying all of them for each token takes longer, the longer the context; MLX puts a
    row into its place where nothing else reads the arrays any more.
    """

    def __init__(self, pair: list[Any]) -> None:
        """``pair``: K and V, ``(1, n_kv_heads, room, head_dim)``."""
        self._pair = pair
        self.fence: Any = None
        """The plane's after its newest row here: once it has another, other rows may have been stored."""

    @property
    def nbytes(self) -> int:
        """Bytes of both."""
        return sum(int(rows.nbytes) for rows in self._pair)

    def goes_on(self, fence: Any, row: Any) -> bool:
        """Whether a plane with this fence lacks nothing here but ``row``, in its type."""
        return self.fence is fence and bool(self._pair[0].dtype == row.dtype)

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
