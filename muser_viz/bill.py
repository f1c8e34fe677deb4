"""What a session's planes cost in bytes, live and allocated (§15.7)."""

from __future__ import annotations

from dataclasses import dataclass

from muser_viz.checks import whole
from muser_viz.geometry import MUSE_GLIMMER, Geometry

HALF_BYTES = 2


@dataclass(frozen=True)
class Footprint:
    """Bytes of ``slots`` sessions of ``context`` tokens each, by layer class (§15.7).

    ``row`` is one K row or V row; ``token_layer`` its K and V together;
    ``token`` all layers of one token. ``*_live`` counts rows that hold a token,
    ``*_allocated`` the rows that exist from the start, both over all slots.
    """

    geometry: Geometry
    context: int
    slots: int
    row: int
    token_layer: int
    token: int
    sliding_live: int
    full_live: int
    sliding_allocated: int
    full_allocated: int

    @property
    def live(self) -> int:
        """Live bytes of both classes."""
        return self.sliding_live + self.full_live

    @property
    def allocated(self) -> int:
        """Allocated bytes of both classes."""
        return self.sliding_allocated + self.full_allocated

    @property
    def full_share(self) -> float:
        """The full layers' part of the allocated bytes, 0 to 1."""
        return self.full_allocated / self.allocated

    def terms(self) -> tuple[tuple[str, str, int], ...]:
        """Each term as (name, the multiplication, bytes)."""
        g = self.geometry
        sliding, full = len(g.sliding_layers), len(g.full_layers)
        live = min(self.context, g.sliding_window)
        ring_rows, grown_rows = _capacities(g, self.context)
        s = f"{self.slots} x "
        return (
            ("one K row, or V row", f"{g.n_kv_heads} x {g.head_dim} x {HALF_BYTES}", self.row),
            ("K and V, a layer and token", f"2 x {self.row}", self.token_layer),
            ("one token, all layers", f"{g.n_layers} x {self.token_layer}", self.token),
            ("sliding, live", f"{s}{sliding} x {live} x {self.token_layer}", self.sliding_live),
            ("full, live", f"{s}{full} x {self.context} x {self.token_layer}", self.full_live),
            (
                "sliding, allocated",
                f"{s}{sliding} x {ring_rows} x {self.token_layer}",
                self.sliding_allocated,
            ),
            ("full, allocated", f"{s}{full} x {grown_rows} x {self.token_layer}", self.full_allocated),
        )


def _capacities(geometry: Geometry, context: int) -> tuple[int, int]:
    def rows(layers: tuple[int, ...]) -> int:
        return geometry.capacity(layers[0], context) if layers else 0

    return rows(geometry.sliding_layers), rows(geometry.full_layers)


def footprint(geometry: Geometry = MUSE_GLIMMER, context: int = 131_072, slots: int = 1) -> Footprint:
    """The bill of §15.7 for ``slots`` sessions with ``context`` tokens in each.

    ``context`` is both the tokens that are live and the ``max_context`` that
    planes are allocated for. InputError outside ``1 .. context_limit``.
    """
    context = whole("context", context, 1, geometry.context_limit)
    slots = whole("slots", slots, 1)
    row = geometry.kv_dim * HALF_BYTES
    token_layer = 2 * row
    n_sliding, n_full = len(geometry.sliding_layers), len(geometry.full_layers)
    ring_rows, grown_rows = _capacities(geometry, context)
    return Footprint(
        geometry,
        context,
        slots,
        row=row,
        token_layer=token_layer,
        token=geometry.n_layers * token_layer,
        sliding_live=slots * n_sliding * min(context, geometry.sliding_window) * token_layer,
        full_live=slots * n_full * context * token_layer,
        sliding_allocated=slots * n_sliding * ring_rows * token_layer,
        full_allocated=slots * n_full * grown_rows * token_layer,
    )
