"""Rings that are wrong on purpose: every one must fail a case.

Each is what somebody would write who had not read §15.5 or §15.6.
"""

from __future__ import annotations

import muser_viz as mv
from muser_viz.ring import Reservation, Ring


class ModuloRing(Ring):
    """Derives the row from the position: the ancestor's way (§15.2)."""

    def physical(self, position: int) -> int:
        super().physical(position)
        return position % self.capacity


class OverflowByOneRing(Ring):
    """Slides its origins by one for a chunk, however many rows the chunk overflows."""

    def append_batch(self, position: int, count: int, layer: int | None = None) -> Reservation:
        was = (self._len, self._origin_logical, self._origin_physical)
        right = super().append_batch(position, count, layer)
        overflow = min(1, self._origin_logical - was[1])
        self._origin_logical = was[1] + overflow
        self._origin_physical = (was[2] + overflow) % self.capacity
        return Reservation(
            right.source_first, right.source_count, position, self._origin_logical, self._origin_physical
        )


class LenIsPositionRing(Ring):
    """Takes the count of live rows for the next position."""

    @property
    def next_position(self) -> int:
        return self._len


def restore_at_row_0(snapshot: mv.PlaneSnapshot) -> mv.KvPlane:
    """Installs every snapshot from row 0 on."""
    return mv.KvPlane.restore(snapshot, rotation=0)
