"""A run of the ring as data: one row a step, everything else derived (§15.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz.checks import POSITION_LIMIT, span, whole
from muser_viz.errors import InputError
from muser_viz.ring import Ring, spans

STEP = np.dtype([("position", "<u4"), ("count", "<u4"), ("accepted", "u1"), ("chunk", "u1"), ("pad", "<u2")])
"""One step, 12 bytes: the position asked for, its tokens, whether it was accepted, whether it was a chunk."""

Int = npt.NDArray[np.int64]


def _spans(positions: Any, counts: Any) -> tuple[Any, Any]:
    """Positions and counts, checked together; where one is wrong, its own error."""
    first, number = np.asarray(positions), np.asarray(counts)
    whole_numbers = all(np.issubdtype(array.dtype, np.integer) for array in (first, number))
    if whole_numbers and first.size:
        last = first.astype(np.int64) + number.astype(np.int64)
        if (
            min(first.min(), number.min()) >= 0
            and max(first.max(), number.max(), last.max()) < POSITION_LIMIT
        ):
            return first, number
    pairs = [span(p, c) for p, c in zip(positions, counts, strict=True)]
    return [p for p, _ in pairs], [c for _, c in pairs]


class RingTrace:
    """Appends, chunks and refusals on a ring, from a state on (§15.5).

    ``steps`` is a structured array (``STEP``), a row a step. The properties are
    int64 arrays, a value a step: the state after it, and the rows that it wrote
    (``first_row``, then ``rows_written`` of them, modulo the capacity).
    """

    def __init__(self, start: Ring, steps: npt.NDArray[np.void]) -> None:
        self.start = start.copy()
        self.steps = steps.copy()
        self.steps.setflags(write=False)
        taken = np.where(steps["accepted"] == 1, steps["count"].astype(np.int64), 0)
        self._tokens: Int = np.cumsum(taken)
        self._taken: Int = taken

    @classmethod
    def run(
        cls,
        ring: Ring | int,
        positions: Sequence[int] | npt.NDArray[np.integer],
        counts: Sequence[int | None] | None = None,
    ) -> RingTrace:
        """The trace of appends at ``positions``; ``ring`` (or a new one of a capacity) is not changed.

        ``counts`` has a number of tokens where a step is a chunk, None where it
        is a single append; left out, all are single. A step at a wrong position
        is a refusal in the trace, not an error. InputError for what no ring
        takes (a negative position, a count without a position).
        """
        start = ring if isinstance(ring, Ring) else Ring(ring)
        given: Sequence[int | None] = [None] * len(positions) if counts is None else counts
        if len(given) != len(positions):
            raise InputError(f"{len(positions)} positions and {len(given)} counts; give one count a position")
        steps = np.zeros(len(given), STEP)
        steps["chunk"] = [c is not None for c in given]
        steps["position"], steps["count"] = _spans(positions, [1 if c is None else c for c in given])
        tokens = np.cumsum(steps["count"], dtype=np.int64)
        follows_on = start.next_position + tokens - steps["count"]
        if np.array_equal(follows_on, steps["position"]):
            steps["accepted"] = 1
        else:
            expected = start.next_position
            for i, (position, count) in enumerate(steps[["position", "count"]].tolist()):
                steps["accepted"][i] = position == expected
                expected += count if position == expected else 0
        return cls(start, steps)

    @classmethod
    def appends(cls, ring: Ring | int, count: int) -> RingTrace:
        """The trace of ``count`` single appends that follow on."""
        start = ring if isinstance(ring, Ring) else Ring(ring)
        count = whole("count", count, 0)
        return cls.run(start, start.next_position + np.arange(count))

    def packed(self) -> npt.NDArray[np.uint32]:
        """The steps for a view: uint32, ``(runs, 4)``: position, count, repeat, flags.

        ``repeat`` appends that follow on are one run; flag 1 is accepted, flag 2 a
        chunk. So a step takes 16 bytes at most.
        """
        steps = self.steps
        plain = (steps["accepted"] == 1) & (steps["chunk"] == 0)
        follows = np.zeros(len(steps), bool)
        follows[1:] = plain[1:] & plain[:-1] & (np.diff(steps["position"].astype(np.int64)) == 1)
        first = np.flatnonzero(~follows)
        runs = np.zeros((len(first), 4), np.uint32)
        runs[:, 0], runs[:, 1] = steps["position"][first], steps["count"][first]
        runs[:, 2] = np.diff(np.append(first, len(steps)))
        runs[:, 3] = steps["accepted"][first] + 2 * steps["chunk"][first]
        return runs

    @property
    def capacity(self) -> int:
        """Rows of the ring."""
        return self.start.capacity

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def position(self) -> Int:
        """The position that each step asked for."""
        return self.steps["position"].astype(np.int64)

    @property
    def accepted(self) -> npt.NDArray[np.bool_]:
        """Whether each step was accepted."""
        return np.asarray(self.steps["accepted"] == 1)

    @property
    def next_position(self) -> Int:
        """The position that is accepted after each step."""
        return self.start.next_position + self._tokens

    @property
    def len(self) -> Int:
        """Live rows after each step."""
        return np.minimum(self.capacity, self.start.len + self._tokens)

    @property
    def origin_logical(self) -> Int:
        """Token at the front of the window after each step."""
        return self.next_position - self.len

    @property
    def origin_physical(self) -> Int:
        """Row that holds it after each step."""
        slid = self.origin_logical - self.start.origin_logical
        return (self.start.origin_physical + slid) % self.capacity

    @property
    def rows_written(self) -> Int:
        """Rows that each step wrote: the live ones of its chunk, 0 for a refusal."""
        return np.minimum(self._taken, self.len)

    @property
    def source_first(self) -> Int:
        """First row of each step's chunk that is still live after it."""
        return self._taken - self.rows_written

    @property
    def first_row(self) -> Int:
        """Row where each step began to write; where it wrote none, the row written next."""
        age = self.next_position - self.rows_written - self.origin_logical
        return (self.origin_physical + age) % self.capacity

    def ring(self, step: int) -> Ring:
        """The ring after step ``step`` (0-based; -1 is the start)."""
        step = whole("step", step, -1, len(self) - 1)
        if step < 0:
            return self.start.copy()
        return Ring(
            self.capacity,
            len=int(self.len[step]),
            origin_logical=int(self.origin_logical[step]),
            origin_physical=int(self.origin_physical[step]),
        )

    def sentence(self, step: int) -> str:
        """What a step did and the state after it, in words."""
        ring = self.ring(step)
        state = (
            f"len {ring.len:,}, origin_logical {ring.origin_logical:,}, "
            f"origin_physical {ring.origin_physical:,}"
        )
        if step < 0:
            return f"start: {state}"
        position, count = int(self.steps["position"][step]), int(self.steps["count"][step])
        what = f"chunk of {count:,} at {position:,}" if self.steps["chunk"][step] else f"append {position:,}"
        if not self.accepted[step]:
            return f"{what}: refused, {ring.next_position:,} is next; {state}"
        written = int(self.rows_written[step])
        first = int(self.first_row[step])
        if written == 0:
            where = "no row"
        elif written == 1:
            where = f"row {first:,}"
        else:
            named = [f"{part.start:,} to {part.stop - 1:,}" for part in spans(first, written, self.capacity)]
            where = "rows " + " and ".join(named)
            dropped = int(self.source_first[step])
            where += f" ({dropped:,} of its tokens had left the window)" if dropped else ""
        return f"{what} -> {where}; {state}"
