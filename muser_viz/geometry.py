"""The model's shape, as far as its KV store depends on it (§15.1, §15.2)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields
from functools import cached_property

from muser_viz.checks import POSITION_LIMIT, whole
from muser_viz.errors import InputError

MIN_CAPACITY = 32
"""No plane is allocated with fewer rows (§15.2)."""


class LayerKind(enum.Enum):
    """The two memory regimes of §15.1."""

    SLIDING_ROPE = "sliding RoPE"
    FULL_NOPE = "full NoPE"


@dataclass(frozen=True)
class Geometry:
    """Layer counts and widths that decide what a store holds.

    Every ``full_every``-th layer (``layer % full_every == full_every - 1``) is
    full NoPE, the rest slide. ``sliding_window`` and ``context_limit`` are in
    tokens; ``head_dim`` in elements. InputError where a field is no whole
    number of at least 1, or the query heads are no multiple of the KV heads. §15.1, §15.2.
    """

    n_layers: int = 52
    sliding_window: int = 2048
    n_kv_heads: int = 2
    head_dim: int = 128
    context_limit: int = 131_072
    n_query_heads: int = 32
    full_every: int = 4

    def __post_init__(self) -> None:
        for field in fields(self):
            most = POSITION_LIMIT if field.name == "context_limit" else None
            object.__setattr__(self, field.name, whole(field.name, getattr(self, field.name), 1, most))
        if self.n_query_heads % self.n_kv_heads:
            raise InputError(
                f"n_query_heads is {self.n_query_heads} for {self.n_kv_heads} KV heads; give a multiple"
            )

    @property
    def kv_dim(self) -> int:
        """Elements of one K row, or one V row: KV heads times head dim (§15.3)."""
        return self.n_kv_heads * self.head_dim

    def kind(self, layer: int) -> LayerKind:
        """The class of a layer; InputError outside ``0 .. n_layers - 1`` (§15.1)."""
        layer = whole("layer", layer, 0, self.n_layers - 1)
        full = layer % self.full_every == self.full_every - 1
        return LayerKind.FULL_NOPE if full else LayerKind.SLIDING_ROPE

    def capacity(self, layer: int, max_context: int) -> int:
        """Rows allocated for a layer's plane at ``max_context`` tokens (§15.2)."""
        max_context = whole("max_context", max_context, 1, self.context_limit)
        if self.kind(layer) is LayerKind.SLIDING_ROPE:
            max_context = min(max_context, self.sliding_window)
        return max(MIN_CAPACITY, max_context)

    def _layers(self, kind: LayerKind) -> tuple[int, ...]:
        return tuple(layer for layer in range(self.n_layers) if self.kind(layer) is kind)

    @cached_property
    def sliding_layers(self) -> tuple[int, ...]:
        """Indexes of the layers whose planes are rings."""
        return self._layers(LayerKind.SLIDING_ROPE)

    @cached_property
    def full_layers(self) -> tuple[int, ...]:
        """Indexes of the layers whose planes grow."""
        return self._layers(LayerKind.FULL_NOPE)


MUSE_GLIMMER = Geometry()
"""The chapter's model: 52 layers, 39 of them sliding, 13 full."""
