"""Where an element of a row lies in a plane's buffer (§15.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muser_viz.checks import POSITION_LIMIT, whole
from muser_viz.errors import InputError

Index = tuple[slice, ...]


@dataclass(frozen=True)
class Layout:
    """The shape of one buffer (K or V) and its index formula (§15.3).

    Token-major keeps a row's heads side by side: ``(capacity, kv_dim)``.
    Head-major keeps a head's rows side by side: ``(n_kv_heads, capacity,
    head_dim)``. InputError where a size is no whole number of at least 1, or
    the buffer holds 2**32 elements or more (kernels index with ``uint``), or
    ``head_major`` is no bool.
    """

    capacity: int
    n_kv_heads: int = 2
    head_dim: int = 128
    head_major: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "capacity", whole("capacity", self.capacity, 1, POSITION_LIMIT // 2))
        for name in ("n_kv_heads", "head_dim"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1))
        if not isinstance(self.head_major, (bool, np.bool_)):
            raise InputError(f"head_major is {self.head_major!r}; give True or False")
        object.__setattr__(self, "head_major", bool(self.head_major))
        if self.size >= POSITION_LIMIT:
            raise InputError(
                f"{self.capacity} rows of {self.kv_dim} elements are {self.size}; "
                f"kernels index fewer than 2**32 elements: ask for fewer rows"
            )

    @property
    def kv_dim(self) -> int:
        """Elements of one row."""
        return self.n_kv_heads * self.head_dim

    @property
    def size(self) -> int:
        """Elements of the buffer."""
        return self.capacity * self.kv_dim

    @property
    def shape(self) -> tuple[int, ...]:
        """The buffer as an array in its own layout."""
        if self.head_major:
            return (self.n_kv_heads, self.capacity, self.head_dim)
        return (self.capacity, self.kv_dim)

    def index(self, rows: slice) -> Index:
        """The array index of some physical rows, whole rows of every head."""
        return (slice(None), rows) if self.head_major else (rows,)

    def offset(self, physical: int, element: int) -> int:
        """Offset, in elements, of ``element`` of row ``physical`` (§15.3)."""
        physical = whole("physical", physical, 0, self.capacity - 1)
        element = whole("element", element, 0, self.kv_dim - 1)
        if not self.head_major:
            return physical * self.kv_dim + element
        kv_head, dim = divmod(element, self.head_dim)
        return (kv_head * self.capacity + physical) * self.head_dim + dim

    @property
    def name(self) -> str:
        """``token-major`` or ``head-major``."""
        return "head-major" if self.head_major else "token-major"
