from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import muser_viz as mv
from muser_viz.ring import Ring
from muser_viz.trace import STEP, RingTrace

STATE = ("len", "origin_logical", "origin_physical", "next_position")
Walk = tuple[Ring, list[int], list[int | None]]


@dataclass
class Stepped:
    """One step as a ring takes it: the ring after it and the rows that it wrote."""

    ring: Ring
    accepted: bool
    rows: list[int]
    source_first: int


def take(ring: Ring, position: int, count: int | None) -> Stepped:
    try:
        if count is None:
            return Stepped(ring, True, [ring.append(position)], 0)
        got = ring.append_batch(position, count)
    except mv.CacheDiscontinuity:
        return Stepped(ring, False, [], 0)
    first = position + got.source_first
    return Stepped(ring, True, [ring.physical(first + i) for i in range(got.source_count)], got.source_first)


def stepped(start: Ring, positions: list[int], counts: list[int | None]) -> list[Stepped]:
    ring, seen = start.copy(), []
    for position, count in zip(positions, counts, strict=True):
        step = take(ring, position, count)
        step.ring = ring.copy()
        seen.append(step)
    return seen


@st.composite
def rings(draw: st.DrawFn) -> Ring:
    """Empty, part full, or full and slid to any rotation."""
    capacity = draw(st.integers(1, 9))
    row = draw(st.integers(0, capacity - 1))
    if draw(st.booleans()):
        return Ring(capacity, len=draw(st.integers(0, capacity)), origin_physical=row)
    slid = draw(st.sampled_from([1, 5, 1000, 1 << 31]))
    return Ring(capacity, len=capacity, origin_logical=slid, origin_physical=row)


@st.composite
def walks(draw: st.DrawFn) -> Walk:
    """A ring, and steps on it: most at the right position, some chunks, some past the capacity."""
    start = draw(rings())
    ring, positions, counts = start.copy(), [], []
    offsets = st.one_of(st.just(0), st.just(0), st.integers(-12, 12))
    for _ in range(draw(st.integers(0, 12))):
        position = max(0, ring.next_position + draw(offsets))
        count = draw(st.none() | st.integers(0, 30))
        take(ring, position, count)
        positions.append(position)
        counts.append(count)
    return start, positions, counts


@given(walk=walks())
@example(walk=(Ring(1), [0, 0, 1], [None, None, 5]))
@example(walk=(Ring(4), [0, 0, 7], [0, 9, 0]))
def test_a_trace_equals_stepping(walk: Walk) -> None:
    start, positions, counts = walk
    trace, seen = RingTrace.run(start, positions, counts), stepped(*walk)
    assert len(trace) == len(seen)
    assert trace.position.tolist() == positions
    assert trace.accepted.tolist() == [step.accepted for step in seen]
    for name in STATE:
        assert getattr(trace, name).tolist() == [getattr(step.ring, name) for step in seen], name
    assert trace.rows_written.tolist() == [len(step.rows) for step in seen]
    assert trace.source_first.tolist() == [step.source_first for step in seen]
    for i, step in enumerate(seen):
        first = int(trace.first_row[i])
        written = [(first + k) % trace.capacity for k in range(int(trace.rows_written[i]))]
        assert written == step.rows
        assert trace.ring(i) == step.ring
    assert trace.ring(-1) == start


@given(walk=walks())
def test_where_nothing_was_written_stands_the_row_written_next(walk: Walk) -> None:
    trace = RingTrace.run(*walk)
    for i in np.flatnonzero(trace.rows_written == 0):
        after = trace.ring(int(i))
        assert trace.first_row[i] == after.append(after.next_position)


@given(walk=walks())
def test_the_source_ring_is_not_changed(walk: Walk) -> None:
    start, positions, counts = walk
    before = start.copy()
    trace = RingTrace.run(start, positions, counts)
    assert start == before
    start.append(start.next_position)
    assert trace.ring(-1) == before
    for step in range(-1, len(trace)):
        ring = trace.ring(step)
        kept = ring.copy()
        ring.append(ring.next_position)
        assert trace.ring(step) == kept


@given(start=rings(), count=st.integers(0, 40))
def test_appends_follow_on(start: Ring, count: int) -> None:
    trace = RingTrace.appends(start, count)
    positions = list(range(start.next_position, start.next_position + count))
    assert trace.steps.tobytes() == RingTrace.run(start, positions).steps.tobytes()
    assert trace.accepted.all()
    assert trace.rows_written.tolist() == [1] * count


def test_the_walk_at_the_wrap() -> None:
    trace = RingTrace.appends(2048, 4097)
    at = [0, 2047, 2048, 2049, 4095, 4096]
    table = [trace.first_row, trace.len, trace.origin_logical, trace.origin_physical]
    assert np.stack(table)[:, at].T.tolist() == [
        [0, 1, 0, 0],
        [2047, 2048, 0, 0],
        [0, 2048, 1, 1],
        [1, 2048, 2, 2],
        [2047, 2048, 2048, 0],
        [0, 2048, 2049, 1],
    ]


def test_a_step_takes_at_most_16_bytes() -> None:
    trace = RingTrace.appends(8, 1000)
    assert STEP.itemsize <= 16
    assert trace.steps.nbytes <= 16 * len(trace)


def test_steps_are_read_only_and_a_copy() -> None:
    trace = RingTrace.appends(8, 3)
    with pytest.raises(ValueError, match="read-only"):
        trace.steps["position"] = 7
    steps = trace.steps.copy()
    again = RingTrace(Ring(8), steps)
    steps["count"] = 5
    assert again.next_position.tolist() == [1, 2, 3]


def test_derived_arrays_are_int64_and_a_value_a_step() -> None:
    trace = RingTrace.run(4, [0, 1, 9], [None, 6, None])
    for name in ("position", *STATE, "rows_written", "source_first", "first_row"):
        values = getattr(trace, name)
        assert (values.dtype, values.shape) == (np.int64, (3,)), name
    assert trace.accepted.dtype == np.bool_


def test_an_empty_trace() -> None:
    for trace in (RingTrace.run(4, []), RingTrace.run(4, [], []), RingTrace.appends(4, 0)):
        assert len(trace) == 0
        assert trace.first_row.shape == trace.next_position.shape == (0,)
        assert trace.ring(-1) == Ring(4)
        assert trace.sentence(-1) == "start: len 0, origin_logical 0, origin_physical 0"


def test_numpy_positions_and_counts_are_taken() -> None:
    trace = RingTrace.run(4, np.array([0, 3], np.uint32), list(np.array([3, 2])))
    assert trace.next_position.tolist() == [3, 5]


def test_chunks_of_one_and_single_appends_are_told_apart() -> None:
    trace = RingTrace.run(4, [0, 1], [None, 1])
    assert trace.steps["chunk"].tolist() == [0, 1]
    assert trace.rows_written.tolist() == [1, 1]


def test_the_last_position_of_32_bits() -> None:
    start = Ring(4, len=4, origin_logical=(1 << 32) - 5, origin_physical=2)
    trace = RingTrace.run(start, [(1 << 32) - 1])
    assert trace.next_position.tolist() == [1 << 32]
    assert trace.first_row.tolist() == [2]
    with pytest.raises(mv.InputError, match="4294967296"):
        RingTrace.appends(start, 2)


@pytest.mark.parametrize(
    ("positions", "counts", "message"),
    [
        ([-1], None, "position is -1"),
        ([1 << 32], None, "position is 4294967296"),
        ([0.0], None, "position is 0.0"),
        ([True], None, "position is True"),
        ([0], [-1], "count is -1"),
        ([0], [1.5], "count is 1.5"),
        ([0], [True], "count is True"),
        ([1], [1 << 32], "count is 4294967296"),
        ([2], [(1 << 32) - 1], "end past"),
        ([0, 1], [1], "2 positions and 1 counts"),
        ([0], [1, None], "1 positions and 2 counts"),
        ([], [1], "0 positions and 1 counts"),
    ],
)
def test_what_no_ring_takes(positions: Any, counts: Any, message: str) -> None:
    with pytest.raises(mv.InputError, match=message):
        RingTrace.run(8, positions, counts)


@pytest.mark.parametrize("capacity", [0, -1, True])
def test_what_is_no_capacity(capacity: Any) -> None:
    for ask in (lambda: RingTrace.run(capacity, [0]), lambda: RingTrace.appends(capacity, 1)):
        with pytest.raises(mv.InputError, match="capacity"):
            ask()


@pytest.mark.parametrize("count", [-1, 1.0, True, None])
def test_what_is_no_number_of_appends(count: Any) -> None:
    with pytest.raises(mv.InputError, match=r"^count is "):
        RingTrace.appends(8, count)


@pytest.mark.parametrize("step", [-2, 3, 1.0, True, None])
def test_what_is_no_step(step: Any) -> None:
    trace = RingTrace.appends(8, 3)
    for ask in (trace.ring, trace.sentence):
        with pytest.raises(mv.InputError, match=r"^step is .*from -1 to 2$"):
            ask(step)


@pytest.mark.parametrize(
    ("position", "count", "said"),
    [
        (8, None, "append 8 -> row 0; len 8, origin_logical 1, origin_physical 1"),
        (8, 1, "chunk of 1 at 8 -> row 0; len 8, origin_logical 1, origin_physical 1"),
        (8, 3, "chunk of 3 at 8 -> rows 0 to 2; len 8, origin_logical 3, origin_physical 3"),
        (8, 0, "chunk of 0 at 8 -> no row; len 8, origin_logical 0, origin_physical 0"),
        (
            8,
            11,
            "chunk of 11 at 8 -> rows 3 to 7 and 0 to 2 (3 of its tokens had left the window); "
            "len 8, origin_logical 11, origin_physical 3",
        ),
        (9, None, "append 9: refused, 8 is next; len 8, origin_logical 0, origin_physical 0"),
        (7, 4, "chunk of 4 at 7: refused, 8 is next; len 8, origin_logical 0, origin_physical 0"),
    ],
)
def test_sentences(position: int, count: int | None, said: str) -> None:
    trace = RingTrace.run(Ring(8, len=8), [position], [count])
    assert trace.sentence(0) == said
    assert trace.sentence(-1) == "start: len 8, origin_logical 0, origin_physical 0"


def test_sentences_group_thousands() -> None:
    trace = RingTrace.run(2048, [0, 2048], [2048, 1500])
    assert trace.sentence(0).startswith("chunk of 2,048 at 0 -> rows 0 to 2,047; len 2,048, ")
    assert trace.sentence(1).endswith(
        "rows 0 to 1,499; len 2,048, origin_logical 1,500, origin_physical 1,500"
    )


def test_a_capacity_may_be_a_numpy_integer() -> None:
    assert RingTrace.run(np.int64(8), [0]).capacity == 8  # type: ignore[arg-type]
    assert len(RingTrace.appends(np.int64(8), 3)) == 3  # type: ignore[arg-type]


def unpacked(runs: np.ndarray) -> list[tuple[int, int, int, int]]:
    """The steps of packed runs: position, count, accepted, chunk."""
    return [(p + k, c, f & 1, f >> 1) for p, c, repeat, f in runs.tolist() for k in range(repeat)]


@pytest.mark.parametrize(
    ("positions", "counts", "runs"),
    [
        ([], [], 0),
        (range(5), [None] * 5, 1),
        ([0, 1, 9, 2, 3], [None] * 5, 3),
        ([0, 1, 2], [1, 1, 1], 3),
        ([0, 5, 12, 13], [5, 7, None, None], 3),
    ],
)
def test_packed_holds_every_step_in_16_bytes_or_less(positions: Any, counts: Any, runs: int) -> None:
    trace = RingTrace.run(4, list(positions), list(counts))
    packed = trace.packed()
    steps = trace.steps
    names = ("position", "count", "accepted", "chunk")
    assert unpacked(packed) == list(zip(*(steps[name].tolist() for name in names), strict=True))
    assert packed.shape == (runs, 4)
    assert packed.nbytes <= 16 * len(trace)
