from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import muser_viz as mv
from muser_viz.threads import BATCH, ONE_ROW

SHAPES = [(5, 4, 3), (4, 3, 7), (4, 9, 4), (1, 1, 4), (6, 9, None), (6, 2, None)]


def plane_of(capacity: int, held: int, head_major: bool, backend: str | None = None) -> mv.KvPlane:
    plane = mv.KvPlane(capacity, 2, 3, head_major, backend)
    rows = np.arange(1, 1 + 6 * held, dtype=np.float32).reshape(held, 6)
    plane.append_batch(0, rows, 1000 + rows)
    return plane


def chunk_of(count: int | None) -> np.ndarray[Any, Any]:
    return np.arange(500, 500 + 6 * (count or 1), dtype=np.float32).reshape(-1, 6)


@pytest.mark.parametrize("head_major", [False, True], ids=["token-major", "head-major"])
@pytest.mark.parametrize(("capacity", "held", "count"), SHAPES)
def test_the_kernel_does_what_the_arithmetic_says(
    capacity: int, held: int, count: int | None, head_major: bool, backend: str
) -> None:
    plane, rows = plane_of(capacity, held, head_major, backend), chunk_of(count)
    launch = mv.store_launch(plane, count)
    table = launch.threads()
    wanted = plane.raw_key().ravel(), plane.raw_value().ravel()
    for buffer, values in zip(wanted, (rows, 1000 + rows), strict=True):
        buffer[table["cell"]] = values.ravel()[table["source"]]
    if count is None:
        plane.append(plane.next_position, rows[0], 1000 + rows[0])
    else:
        plane.append_batch(plane.next_position, rows, 1000 + rows)
    assert np.array_equal(plane.raw_key().ravel(), wanted[0])
    assert np.array_equal(plane.raw_value().ravel(), wanted[1])

    cells = [
        plane.layout.offset(int(entry["row"]), int(entry["element"])) for entry in table[["row", "element"]]
    ]
    assert table["cell"].tolist() == cells


@pytest.mark.parametrize("head_major", [False, True], ids=["token-major", "head-major"])
@pytest.mark.parametrize("count", [None, 3])
def test_it_says_what_the_plane_launches(
    head_major: bool, count: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane, rows = plane_of(5, 7, head_major, "numpy"), chunk_of(count)
    launch = mv.store_launch(plane, count)
    seen: list[Any] = []
    monkeypatch.setattr(plane.device, "launch", lambda *launched: seen.append(launched) or [])
    if count is None:
        plane.append(plane.next_position, rows[0], rows[0])
    else:
        plane.append_batch(plane.next_position, rows, rows)
    ((name, grid, arguments, *_),) = seen
    assert (name, grid, list(arguments[4:])) == (launch.kernel, launch.grid, list(launch.scalars.values()))
    assert name == (ONE_ROW if count is None and not head_major else BATCH)


def test_a_plane_is_not_changed() -> None:
    plane = plane_of(5, 7, False)
    before = plane.ring, plane.raw_key().tobytes()
    mv.store_launch(plane, 3).run(chunk_of(3), chunk_of(3))
    assert (plane.ring, plane.raw_key().tobytes()) == before


def test_threads_past_the_guard_do_nothing(backend: str) -> None:
    launch = mv.store_launch(mv.KvPlane(5, 2, 3, backend=backend), 3).but(source_count=2)
    table = launch.threads(40)
    assert table["stores"].sum() == 12
    assert all((table[name][12:] == -1).all() for name in ("source_row", "element", "source", "row", "cell"))
    for threads in (None, 18, 1000):
        for buffer in launch.run(chunk_of(3), chunk_of(3), threads, backend):
            assert np.array_equal(buffer[:2], chunk_of(3)[:2])
            assert not buffer[2:].any()


def test_the_one_row_kernel_has_a_guard_too(backend: str) -> None:
    launch = mv.store_launch(mv.KvPlane(5, 2, 3, backend=backend))
    key, value = launch.run(chunk_of(2), -chunk_of(2), 12, backend)
    assert np.array_equal(key[0], chunk_of(2)[0])
    assert np.array_equal(value[0], -chunk_of(2)[0])
    assert not key[1:].any()


@pytest.mark.parametrize("shift", [1, 1_000_000, 4_294_967_000])
def test_positions_matter_by_their_difference_alone(shift: int, backend: str) -> None:
    launch = mv.store_launch(plane_of(5, 4, True), 3)
    told = launch.scalars
    later = launch.but(
        start_position=told["start_position"] + shift, origin_logical=told["origin_logical"] + shift
    )
    assert np.array_equal(later.threads(), launch.threads())
    for a, b in zip(
        launch.run(chunk_of(3), chunk_of(3), backend=backend),
        later.run(chunk_of(3), chunk_of(3), backend=backend),
        strict=True,
    ):
        assert np.array_equal(a, b)


def test_sums_wrap_at_32_bits() -> None:
    launch = mv.store_launch(mv.KvPlane(5, 1, 1), 1).but(origin_logical=1)
    assert launch.threads()["row"].tolist() == [(2**32 - 1) % 5]


def test_what_is_not_run() -> None:
    one, batch = mv.store_launch(mv.KvPlane(5, 2, 3)), mv.store_launch(plane_of(5, 7, False), 3)
    rows = chunk_of(3)
    for launch, said in (
        (one.but(write_index=5), "cell 35 of 30"),
        (batch.but(source_first=1), "source 23 of 18"),
        (batch.but(source_count=6), "source 35 of 18"),
        (batch.but(origin_logical=8), "no ring"),
        (batch.but(origin_physical=5), "no ring"),
        (batch.but(start_position=2**32 - 2, origin_logical=2**32 - 5), "no ring"),
    ):
        with pytest.raises(mv.InputError, match=said):
            launch.run(rows, rows)
    with pytest.raises(mv.InputError, match="two threads would write one cell"):
        batch.but(source_count=6).run(chunk_of(6), chunk_of(6))
    with pytest.raises(mv.InputError, match="threads is 5"):
        one.run(rows, rows, threads=5)
    with pytest.raises(mv.InputError, match="float32"):
        one.run(rows.astype(np.float64), rows)


def test_what_cannot_be_told() -> None:
    launch = mv.store_launch(mv.KvPlane(5, 2, 3))
    for name in ("position", "kv_dim", "capacity"):
        with pytest.raises(mv.InputError, match=rf"'{name}' cannot be told .*; write_index can"):
            launch.but(**{name: 1})
    with pytest.raises(mv.InputError, match="write_index is -1"):
        launch.but(write_index=-1)
    with pytest.raises(mv.InputError, match="count is 0"):
        mv.store_launch(mv.KvPlane(5, 2, 3), 0)
