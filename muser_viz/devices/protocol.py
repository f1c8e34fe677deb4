"""What every backend does: hold f16 buffers, take arrays, launch a kernel by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from muser_viz.layout import Index

DTYPES: Mapping[str, np.dtype[Any]] = {
    "float": np.dtype(np.float32),
    "half": np.dtype(np.float16),
    "uint": np.dtype(np.uint32),
}


Kind = Literal["float32", "float16", "bfloat16"]
"""What a kernel's ``float`` arrays are in memory: widened to f32 where read, rounded where written."""
KINDS: Mapping[str, np.dtype[Any]] = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(np.uint16),
}
"""The same for NumPy, which has no bf16: its words."""


def word(base: str, scalar: float) -> int:
    """A kernel's scalar as the word that it travels in: a ``float`` by its bits."""
    return int(np.float32(scalar).view(np.uint32)) if base == "float" else int(scalar)


@dataclass(frozen=True)
class Fresh:
    """An output that the launch allocates, of the launch's kind."""

    shape: tuple[int, ...]


class Buffer(Protocol):
    """An f16 buffer that kernels write in place; it belongs to one plane."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape in the plane's own layout."""


class Device(Protocol):
    """A place where kernels run.

    A device array is whatever the backend computes with: a NumPy array or an
    ``mlx.core.array``. ``launch`` takes a kernel's arguments in the order of
    its buffer table and returns its Fresh outputs, in that order; a Buffer
    given for an output is written in place. Work on one Buffer happens in the
    order in which it was launched.
    """

    name: str

    def describe(self) -> str:
        """One line: the compiler, or the GPU."""

    def put(self, array: npt.NDArray[Any]) -> Any:
        """A device array with a copy of an f32 or uint32 NumPy array."""

    def buffer(self, contents: npt.NDArray[np.float16]) -> Buffer:
        """A Buffer with a copy of ``contents``."""

    def get(self, array: Any) -> npt.NDArray[Any]:
        """A NumPy copy of a device array or of a whole Buffer."""

    def half(self, buffer: Any) -> Any:
        """A Buffer's present contents for MLX or NumPy to read: after every launch so far."""

    def read(self, parts: Sequence[tuple[Any, Index]]) -> list[npt.NDArray[np.float16]]:
        """NumPy copies of slices of Buffers."""

    def write(self, parts: Sequence[tuple[Any, Index, npt.NDArray[np.float16]]]) -> None:
        """Put slices of Buffers back, bit for bit."""

    def launch(self, name: str, grid: int, arguments: Sequence[Any], kind: Kind = "float32") -> list[Any]:
        """Run a kernel over ``grid`` threads; its ``float`` arrays are of ``kind``."""
