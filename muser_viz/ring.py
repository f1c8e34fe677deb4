"""The ring's bookkeeping alone: four integers, no bytes (§15.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from muser_viz.checks import POSITION_LIMIT, span, whole
from muser_viz.errors import CacheDiscontinuity, InputError, NotLive


@dataclass(frozen=True)
class Reservation:
    """What a chunk's reservation hands to the batch store kernel (§15.4, §15.5).

    ``source_first`` and ``source_count`` name the chunk's rows that are still
    live; ``start_position`` is the token of source row 0; the origins are those
    after the reservation.
    """

    source_first: int
    source_count: int
    start_position: int
    origin_logical: int
    origin_physical: int


def spans(first: int, count: int, capacity: int) -> tuple[slice, ...]:
    """The physical rows ``(first + i) % capacity`` as at most two slices: head, then tail."""
    over = first + count - capacity
    if over > 0:
        return slice(first, capacity), slice(0, over)
    return (slice(first, first + count),) if count else ()


class Ring:
    """``capacity`` rows with an explicit logical and physical origin (§15.2, §15.5).

    ``len`` rows are live. ``origin_logical`` is the token at the front of the
    window, ``origin_physical`` the row that holds it. Nothing is derived from
    a position modulo the capacity.
    """

    __slots__ = ("_capacity", "_len", "_origin_logical", "_origin_physical")

    def __init__(
        self, capacity: int, *, len: int = 0, origin_logical: int = 0, origin_physical: int = 0
    ) -> None:
        self._capacity = whole("capacity", capacity, 1)
        self._len = whole("len", len, 0, self._capacity)
        self._origin_logical = whole("origin_logical", origin_logical, 0, POSITION_LIMIT - self._len)
        self._origin_physical = whole("origin_physical", origin_physical, 0, self._capacity - 1)
        if self._origin_logical > 0 and self._len < self._capacity:
            raise InputError(
                f"origin_logical is {origin_logical} with {len} of {capacity} rows live; "
                f"a window slides only once the ring is full: give origin_logical=0 or len={capacity}"
            )

    @property
    def capacity(self) -> int:
        """Rows in the ring."""
        return self._capacity

    @property
    def len(self) -> int:
        """Rows that are live."""
        return self._len

    @property
    def origin_logical(self) -> int:
        """Token position at the front of the live window."""
        return self._origin_logical

    @property
    def origin_physical(self) -> int:
        """Row that holds the token at the front of the window."""
        return self._origin_physical

    @property
    def next_position(self) -> int:
        """The only token position that is accepted next."""
        return self._origin_logical + self._len

    def copy(self) -> Ring:
        """Another ring in the same state; it needs no check, and a model asks for one a layer and token."""
        ring = Ring.__new__(Ring)
        ring._capacity, ring._len = self._capacity, self._len
        ring._origin_logical, ring._origin_physical = self._origin_logical, self._origin_physical
        return ring

    def append(self, position: int, layer: int | None = None) -> int:
        """Reserve the row of one token and return it (§15.5).

        CacheDiscontinuity unless ``position == next_position``; InputError
        where it is no position. Then nothing is changed.
        """
        self._reserve(position, 1, layer)
        return self.physical(position)

    def append_batch(self, position: int, count: int, layer: int | None = None) -> Reservation:
        """Reserve rows for ``count`` tokens from ``position`` (§15.5).

        The end state is that of ``count`` single appends. A count of 0 changes
        nothing. Errors as ``append``.
        """
        position, count = self._reserve(position, count, layer)
        source_first = min(count, max(0, self._origin_logical - position))
        return Reservation(
            source_first, count - source_first, position, self._origin_logical, self._origin_physical
        )

    def _reserve(self, position: int, count: int, layer: int | None) -> tuple[int, int]:
        """Take the state after ``count`` tokens; the position and the count, as ints."""
        position, count = span(position, count)
        if position != self.next_position:
            raise CacheDiscontinuity(layer, self.next_position, position)
        overflow = max(0, self._len + count - self._capacity)
        self._origin_logical += overflow
        self._origin_physical = (self._origin_physical + overflow) % self._capacity
        self._len = min(self._capacity, self._len + count)
        return position, count

    def physical(self, position: int) -> int:
        """The row of a live token, through the origins (§15.2); NotLive otherwise."""
        position = whole("position", position, 0)
        if not self._origin_logical <= position < self.next_position:
            held = (
                "the ring is empty"
                if self._len == 0
                else f"tokens {self._origin_logical} to {self.next_position - 1} are live"
            )
            raise NotLive(f"token {position} was asked for; {held}: ask for a live token")
        return (self._origin_physical + position - self._origin_logical) % self._capacity

    def live_spans(self) -> tuple[slice, ...]:
        """The live rows in logical order, as at most two physical slices."""
        return spans(self._origin_physical, self._len, self._capacity)

    def occupants(self) -> npt.NDArray[np.int64]:
        """The token of each row, -1 where a row is not live: int64, ``(capacity,)``."""
        offset = (np.arange(self._capacity) - self._origin_physical) % self._capacity
        return np.where(offset < self._len, self._origin_logical + offset, -1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ring):
            return NotImplemented
        return self.state == other.state

    __hash__ = None  # type: ignore[assignment]

    @property
    def state(self) -> tuple[int, int, int, int]:
        """Capacity, len, and both origins."""
        return (self._capacity, self._len, self._origin_logical, self._origin_physical)

    def __repr__(self) -> str:
        return (
            f"Ring(capacity={self._capacity}, len={self._len}, "
            f"origin_logical={self._origin_logical}, origin_physical={self._origin_physical})"
        )
