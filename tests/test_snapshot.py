from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import muser_viz as mv


def filled(head_major: bool = False) -> mv.KvPlane:
    plane = mv.KvPlane(8, 2, 4, head_major)
    plane.append_batch(0, mv.seeded(1, 13, 8), mv.seeded(2, 13, 8))
    return plane


def words(seed: int, rows: int = 8, dtype: Any = np.float16) -> Any:
    return mv.seeded(seed, 2, rows, 4).astype(np.float16).astype(dtype)


GOOD: dict[str, Any] = {"capacity": 8, "origin_logical": 5, "head_major": False}


@pytest.mark.parametrize("head_major", [False, True])
def test_a_file_gives_the_same_plane(tmp_path: Path, head_major: bool) -> None:
    plane = filled(head_major)
    path = tmp_path / "plane.safetensors"
    plane.snapshot().save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["plane.safetensors"]
    back = mv.KvPlane.restore(mv.PlaneSnapshot.load(path))
    assert back.ring == plane.ring
    assert back.head_major is head_major
    assert back.raw_key().tobytes() == plane.raw_key().tobytes()
    assert back.raw_value().tobytes() == plane.raw_value().tobytes()


def test_a_fresh_process_reads_the_same_bits(tmp_path: Path) -> None:
    plane = filled()
    plane.snapshot().save(tmp_path / "plane.safetensors")
    query = mv.seeded(3, 4, 4)
    logits = mv.stand_in_logits(mv.attend(plane, query), vocab=32)
    program = (
        "import muser_viz as mv\n"
        "plane = mv.KvPlane.restore(mv.PlaneSnapshot.load('plane.safetensors'))\n"
        "print(*mv.hexbits(mv.stand_in_logits(mv.attend(plane, mv.seeded(3, 4, 4)), vocab=32)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == mv.hexbits(logits).tolist()


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("len", {"keys": words(1, 9), "values": words(2, 9)}),
        ("origin_logical", {"origin_logical": -1}),
        ("origin_logical", {"keys": words(1, 7), "values": words(2, 7)}),
        ("origin_logical", {"origin_logical": 5.0}),
        ("capacity", {"capacity": 0}),
        ("values", {"values": words(2, 7)}),
        ("keys", {"keys": words(1)[0]}),
        ("keys", {"keys": words(1).astype(np.float64)}),
        ("head_major", {"head_major": "yes"}),
        ("origin_logical", {"origin_logical": 1 << 32}),
        ("keys", {"keys": [[1, 2], [3]]}),
        ("n_kv_heads", {"keys": words(1)[:0], "values": words(2)[:0]}),
    ],
)
def test_an_unsound_snapshot_names_the_field(field: str, arguments: dict[str, Any]) -> None:
    given = {"keys": words(1), "values": words(2), **GOOD, **arguments}
    with pytest.raises(mv.SnapshotError, match=field):
        mv.PlaneSnapshot(given.pop("keys"), given.pop("values"), **given)


def test_f32_that_is_exactly_f16_is_taken() -> None:
    snapshot = mv.PlaneSnapshot(words(1, dtype=np.float32), words(2, dtype=np.float32), **GOOD)
    assert snapshot.keys.dtype == np.float16
    assert np.array_equal(snapshot.keys, words(1))


@pytest.mark.parametrize("bad", [1.0001, 65520.0, 2.0**-26, 3e38])
def test_f32_that_is_no_f16_is_refused_with_the_first(bad: float) -> None:
    keys = words(1, dtype=np.float32)
    keys[1, 2, 3] = keys[1, 4, 0] = bad
    with pytest.raises(mv.SnapshotError, match=r"keys\[1, 2, 3\]"):
        mv.PlaneSnapshot(keys, words(2), **GOOD)


def test_infinity_and_minus_zero_survive() -> None:
    keys = words(1, dtype=np.float32)
    keys[0, 0] = [np.inf, -np.inf, -0.0, 2.0**-24]
    snapshot = mv.PlaneSnapshot(keys, words(2), **GOOD)
    assert mv.hexbits(snapshot.keys[0, 0]).tolist() == ["0x7c00", "0xfc00", "0x8000", "0x0001"]


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, str]], None]) -> None:
    with safe_open(path, framework="numpy") as file:
        metadata = dict(file.metadata())
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(tensors, metadata)
    save_file(tensors, path, metadata)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("format", lambda _, m: m.update(format="another")),
        ("format", lambda _, m: m.clear()),
        ("layout", lambda _, m: m.update(layout="row-major")),
        ("layout", lambda _, m: m.pop("layout")),
        ("capacity", lambda _, m: m.pop("capacity")),
        ("capacity", lambda _, m: m.update(capacity="eight")),
        ("capacity", lambda _, m: m.update(capacity=" 8")),
        ("origin_logical", lambda _, m: m.update(origin_logical="1" + "0" * 30)),
        ("origin_logical", lambda _, m: m.update(origin_logical="-3")),
        ("len", lambda _, m: m.update(len="7")),
        ("len", lambda _, m: m.update(capacity="6")),
        ("n_kv_heads", lambda _, m: m.update(n_kv_heads="4")),
        ("head_dim", lambda _, m: m.update(head_dim="2")),
        ("value", lambda t, _: t.pop("value")),
        ("values", lambda t, _: t.update(value=t["value"][:, 1:].copy())),
        ("keys", lambda t, _: t.update(key=t["key"].astype(np.int16))),
        ("sha256_key", lambda _, m: m.pop("sha256_key")),
        ("key is not what was saved", lambda t, _: t.update(key=-t["key"])),
        ("value is not what was saved", lambda t, _: t.update(value=t["value"][:, ::-1].copy())),
        ("value is not what was saved", lambda _, m: m.update(sha256_value="0" * 64)),
        ("fields are not what was saved", lambda _, m: m.update(origin_logical="14")),
        ("fields are not what was saved", lambda _, m: m.update(layout="head-major")),
    ],
)
def test_a_file_that_was_changed_names_file_and_field(
    tmp_path: Path, field: str, change: Callable[[dict[str, Any], dict[str, str]], None]
) -> None:
    path = tmp_path / "plane.safetensors"
    filled().snapshot().save(path)
    rewritten(path, change)
    with pytest.raises(mv.SnapshotError, match=rf"plane.safetensors: .*{field}"):
        mv.PlaneSnapshot.load(path)


@pytest.mark.parametrize("size", [0, 7, 40, 300, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "plane.safetensors"
    filled().snapshot().save(path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(mv.SnapshotError, match="no whole safetensors file"):
        mv.PlaneSnapshot.load(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(mv.SnapshotError, match="does not exist"):
        mv.PlaneSnapshot.load(tmp_path / "none")


def test_a_save_that_fails_leaves_the_earlier_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plane.safetensors"
    filled().snapshot().save(path)
    before = path.read_bytes()

    def half(_: Any, target: Path, __: Any) -> None:
        target.write_bytes(before[:100])
        raise OSError("disk full")

    monkeypatch.setattr("muser_viz.snapshot.save_file", half)
    with pytest.raises(OSError, match="disk full"):
        filled(True).snapshot().save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["plane.safetensors"]


def test_the_rotation_is_the_formulas() -> None:
    assert mv.PlaneSnapshot(words(1), words(2), capacity=8, origin_logical=21, head_major=True).rotation == 5


def test_a_file_with_f32_rows_is_taken_where_they_are_exactly_f16(tmp_path: Path) -> None:
    path = tmp_path / "plane.safetensors"
    plane = filled()
    plane.snapshot().save(path)
    rewritten(path, lambda t, _: t.update(key=t["key"].astype(np.float32)))
    assert np.array_equal(mv.PlaneSnapshot.load(path).keys, plane.keys())
    rewritten(path, lambda t, _: t.update(key=t["key"] + np.float32(2.0**-20)))
    with pytest.raises(mv.SnapshotError, match=r"plane.safetensors: keys\[0, 0, 0\]"):
        mv.PlaneSnapshot.load(path)


def test_any_byte_of_a_file_that_is_changed_is_found(tmp_path: Path) -> None:
    path = tmp_path / "plane.safetensors"
    filled().snapshot().save(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(mv.SnapshotError, match=r"plane.safetensors"):
            mv.PlaneSnapshot.load(path)
