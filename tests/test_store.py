from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muser_viz as mv

SMALL = mv.Geometry(n_layers=8, sliding_window=32, n_kv_heads=2, head_dim=3, context_limit=128)
WIDTH = SMALL.kv_dim


def rows(position: int, count: int, layers: int = SMALL.n_layers) -> tuple[np.ndarray, np.ndarray]:
    return mv.seeded(2 * position, layers, count, WIDTH), mv.seeded(2 * position + 1, layers, count, WIDTH)


def everything(store: mv.KvStore) -> list[Any]:
    return [
        (plane.ring.state, plane.raw_key().tobytes(), plane.raw_value().tobytes()) for plane in store.planes
    ]


def filled(tokens: int = 50, backend: str | None = None) -> mv.KvStore:
    store = mv.KvStore(SMALL, 100, backend)
    for position in range(0, tokens, 10):
        store.append_batch(position, *rows(position, min(10, tokens - position)))
    return store


def test_the_chapters_planes() -> None:
    store = mv.KvStore(max_context=64)
    assert [plane.head_major for plane in store.planes] == [layer % 4 == 3 for layer in range(52)]
    assert {plane.capacity for plane in store.planes} == {64}
    assert (store.nbytes, store.live_nbytes, store.next_position) == (52 * 64 * 1024, 0, 0)
    assert "52 planes" in repr(store)
    small = mv.KvStore(max_context=5)
    assert {plane.capacity for plane in small.planes} == {32}


def test_every_layer_has_its_own_rows(backend: str) -> None:
    store = mv.KvStore(SMALL, 100, backend)
    chunk = rows(0, 40)
    store.append_batch(0, *chunk)
    single = rows(40, 1)
    store.append(40, single[0][:, 0], single[1][:, 0])
    for layer, plane in enumerate(store.planes):
        kept = plane.capacity if plane.len == plane.capacity else 41
        for got, part, last in zip((plane.keys(), plane.values()), chunk, single, strict=True):
            whole = np.concatenate([part[layer], last[layer]])[-kept:]
            assert np.array_equal(got.transpose(1, 0, 2).reshape(kept, -1), whole.astype(np.float16))


@pytest.mark.parametrize("at", [0, 3, 7])
def test_one_layer_out_of_step_refuses_all_layers(at: int) -> None:
    store = filled()
    key, value = rows(50, 1)
    store.planes[at].append(50, key[at, 0], value[at, 0])
    before = everything(store)
    with pytest.raises(mv.CacheDiscontinuity) as caught:
        store.append(50, key[:, 0], value[:, 0])
    assert (caught.value.layer, caught.value.expected, caught.value.got) == (at, 51, 50)
    assert everything(store) == before


@pytest.mark.parametrize("position", [49, 51, -1, 2.5])
def test_a_refused_position_changes_nothing(position: Any) -> None:
    store = filled()
    before = everything(store)
    key, value = rows(50, 1)
    with pytest.raises((mv.CacheDiscontinuity, mv.InputError)):
        store.append(position, key[:, 0], value[:, 0])
    assert everything(store) == before


def test_a_refused_shape_or_dtype_changes_nothing() -> None:
    store = filled()
    before = everything(store)
    key, value = rows(50, 2)
    for keys, values in ((key[1:], value), (key, value[:, 1:]), (key.astype(np.float16), value)):
        with pytest.raises(mv.InputError):
            store.append_batch(50, keys, values)
    assert everything(store) == before


def test_past_max_context_it_refuses_before_it_touches_a_plane() -> None:
    store = filled(96)
    before = everything(store)
    with pytest.raises(mv.ContextExhausted, match="max_context 100"):
        store.append_batch(96, *rows(96, 5))
    assert everything(store) == before
    store.append_batch(96, *rows(96, 4))
    with pytest.raises(mv.ContextExhausted):
        store.append(100, *(part[:, 0] for part in rows(100, 1)))


@pytest.mark.parametrize("tokens", [5, 50])
@pytest.mark.parametrize("count", [1, 7, 40])
def test_a_step_broken_off_puts_every_layer_back(tokens: int, count: int, backend: str) -> None:
    store = filled(tokens, backend)
    before = everything(store)
    key, value = rows(tokens, count)
    with pytest.raises(ZeroDivisionError), store.step(tokens, count) as step:
        for layer in range(5):
            step.write(layer, key[layer], value[layer])
        assert everything(store) != before
        raise ZeroDivisionError
    assert everything(store) == before
    with (
        pytest.raises(mv.InputError, match="3 of 8 layers unwritten, layer 5"),
        store.step(tokens, count) as step,
    ):
        for layer in range(5):
            step.write(layer, key[layer], value[layer])
    assert everything(store) == before
    store.append_batch(tokens, key, value)
    assert store.next_position == tokens + count


def test_while_a_step_is_open_nothing_else_writes(tmp_path: Path) -> None:
    store = filled()
    key, value = rows(50, 1)
    store.save(tmp_path)
    before = everything(store)
    with pytest.raises(ZeroDivisionError), store.step(50) as step:
        step.write(0, key[0, 0], value[0, 0])
        with pytest.raises(mv.InputError, match="step at position 50 is still open"), store.step(51):
            pass
        for act in (
            lambda: store.planes[0].append(51, key[0, 0], value[0, 0]),
            lambda: store.planes[1].append_batch(50, key[1], value[1]),
            store.planes[2].reset,
            lambda: store.save(tmp_path),
        ):
            with pytest.raises(mv.InputError, match="step"):
                act()
        raise ZeroDivisionError
    assert everything(store) == before
    assert everything(mv.KvStore.load(tmp_path)) == before
    store.planes[0].append(50, key[0, 0], value[0, 0])


def test_a_step_that_is_never_closed_undoes_only_itself() -> None:
    store = filled()
    before = everything(store)
    opened = store.step(50)
    step = opened.__enter__()
    step.write(0, rows(50, 1)[0][0, 0], rows(50, 1)[1][0, 0])
    del opened, step
    gc.collect()
    assert everything(store) == before
    store.append_batch(50, *rows(50, 1))
    assert store.next_position == 51


def test_a_second_interrupt_does_not_stop_the_putting_back(monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled()
    before = everything(store)
    undo, calls = mv.KvPlane.undo, [0]

    def interrupted(self: mv.KvPlane, held: Any) -> None:
        calls[0] += 1
        if calls[0] in (2, 3, 6):
            raise KeyboardInterrupt
        undo(self, held)

    monkeypatch.setattr(mv.KvPlane, "undo", interrupted)
    key, value = rows(50, 1)
    with pytest.raises(ZeroDivisionError), store.step(50) as step:
        for layer in range(8):
            step.write(layer, key[layer], value[layer])
        raise ZeroDivisionError
    assert everything(store) == before


def test_layers_out_of_step_are_not_saved(tmp_path: Path) -> None:
    store = filled()
    store.save(tmp_path)
    before = everything(store)
    store.planes[3].append(50, *(part[3, 0] for part in rows(50, 1)))
    with pytest.raises(mv.InputError, match="positions 50 to 51"):
        store.save(tmp_path)
    assert everything(mv.KvStore.load(tmp_path)) == before


def test_a_layer_is_written_once_and_only_inside_its_step() -> None:
    store = filled()
    key, value = rows(50, 1)
    with store.step(50) as step:
        for layer in range(SMALL.n_layers):
            step.write(layer, key[layer, 0], value[layer, 0])
        with pytest.raises(mv.InputError, match="layer 4 was written twice"):
            step.write(4, key[4, 0], value[4, 0])
        with pytest.raises(mv.InputError, match="layer is 8"):
            step.write(8, key[4, 0], value[4, 0])
    with pytest.raises(mv.InputError, match="ended"):
        step.write(4, key[4, 0], value[4, 0])
    assert store.next_position == 51


def test_save_and_load(tmp_path: Path) -> None:
    store = filled()
    store.save(tmp_path / "session")
    back = mv.KvStore.load(tmp_path / "session")
    assert everything(back) == everything(store)
    assert (back.geometry, back.max_context, back.next_position) == (SMALL, 100, 50)
    for each in (store, back):
        each.append_batch(50, *rows(50, 9))
    assert everything(back) == everything(store)
    store.save(tmp_path / "session")
    assert everything(mv.KvStore.load(tmp_path / "session")) == everything(store)
    assert len(list((tmp_path / "session").iterdir())) == SMALL.n_layers + 1


def test_a_save_that_fails_leaves_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "session"
    store = filled()
    store.save(folder)
    before = everything(store)
    files = sorted(path.name for path in folder.iterdir())
    store.append_batch(50, *rows(50, 5))
    save = mv.PlaneSnapshot.save

    def fails(self: mv.PlaneSnapshot, path: Path) -> None:
        if "plane-05" in path.name:
            raise OSError("disk full")
        save(self, path)

    monkeypatch.setattr(mv.PlaneSnapshot, "save", fails)
    with pytest.raises(OSError, match="disk full"):
        store.save(folder)
    assert sorted(path.name for path in folder.iterdir()) == files
    assert everything(mv.KvStore.load(folder)) == before


def test_foreign_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "plane-mine.safetensors").write_text("mine")
    store = filled()
    store.save(tmp_path)
    store.save(tmp_path)
    assert (tmp_path / "plane-mine.safetensors").read_text() == "mine"


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("format", {"format": "other"}),
        ("max_context", {"max_context": 129}),
        ("next_position", {"next_position": -1}),
        ("next_position", {"next_position": 49}),
        ("planes", {"planes": []}),
        ("planes", {"planes": ["../x"] * 8}),
        ("planes", {"planes": ["notes.txt"] * 8}),
        ("planes", {"planes": ["plane-00-00000000.safetensors"] * 8}),
        ("geometry", {"geometry": {"n_layers": 8}}),
        ("n_layers", {"geometry": {**asdict(SMALL), "n_layers": 0}}),
        ("head_dim", {"geometry": {**asdict(SMALL), "head_dim": 6}}),
        ("capacity", {"max_context": 90}),
        ("head_major", {"geometry": {**asdict(SMALL), "full_every": 2}}),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(tmp_path: Path, field: str, change: dict[str, Any]) -> None:
    filled().save(tmp_path)
    path = tmp_path / "store.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, **change}))
    with pytest.raises(mv.SnapshotError, match=field):
        mv.KvStore.load(tmp_path)


def test_every_plane_is_checked_before_one_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled().save(tmp_path)
    last = sorted(tmp_path.glob("plane-07-*"))[0]
    last.write_bytes(last.read_bytes()[:-1])
    built: list[Any] = []
    monkeypatch.setattr(mv.KvPlane, "restore", lambda *a, **k: built.append((a, k)))
    with pytest.raises(mv.SnapshotError, match="plane-07"):
        mv.KvStore.load(tmp_path)
    last.unlink()
    with pytest.raises(mv.SnapshotError, match=r"plane-07.*does not exist"):
        mv.KvStore.load(tmp_path)
    assert not built


@pytest.mark.parametrize("text", ["", "{", "[]", '"store"'])
def test_what_is_no_manifest(tmp_path: Path, text: str) -> None:
    (tmp_path / "store.json").write_text(text)
    with pytest.raises(mv.SnapshotError, match=r"store.json"):
        mv.KvStore.load(tmp_path)
    with pytest.raises(mv.SnapshotError, match="does not exist"):
        mv.KvStore.load(tmp_path / "none")


def test_an_interrupt_right_after_the_new_save_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled()
    store.save(tmp_path)
    store.append_batch(50, *rows(50, 3))
    after = everything(store)
    cleanup = tempfile.TemporaryDirectory.cleanup

    def interrupted(self: Any) -> None:
        cleanup(self)
        if "store.json" in self.name:
            raise KeyboardInterrupt

    monkeypatch.setattr(tempfile.TemporaryDirectory, "cleanup", interrupted)
    monkeypatch.setattr(tempfile.TemporaryDirectory, "__exit__", lambda self, *_: self.cleanup())
    with pytest.raises(KeyboardInterrupt):
        store.save(tmp_path)
    assert everything(mv.KvStore.load(tmp_path)) == after


def test_a_damaged_manifest_can_be_saved_over_and_strangers_files_stay(tmp_path: Path) -> None:
    store = filled()
    store.save(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    path = tmp_path / "store.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "planes": ["notes.txt", *manifest["planes"][1:]]}))
    store.save(tmp_path)
    path.write_text("{" + "[" * 200_000)
    with pytest.raises(mv.SnapshotError, match="no whole manifest"):
        mv.KvStore.load(tmp_path)
    store.save(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert everything(mv.KvStore.load(tmp_path)) == everything(store)
    assert len(list(tmp_path.iterdir())) == SMALL.n_layers + 2


def test_what_a_killed_save_left_is_swept(tmp_path: Path) -> None:
    (tmp_path / "plane-03-0a1b2c3d.safetensors").write_text("orphan")
    (tmp_path / ".plane-03-0a1b2c3d.safetensors-x_9").mkdir()
    filled().save(tmp_path)
    assert len(list(tmp_path.iterdir())) == SMALL.n_layers + 1


@pytest.mark.parametrize("wrap", [list, np.asarray, lambda row: np.asarray(row)[None]])
def test_a_step_takes_a_row_or_a_chunk_of_one(wrap: Any) -> None:
    store = filled()
    key, value = rows(50, 1)
    with store.step(50) as step:
        for layer in range(8):
            step.write(layer, wrap(key[layer, 0]), wrap(value[layer, 0]))
    assert store.next_position == 51


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("digests is missing", lambda m: m.pop("digests")),
        ("sha256 is missing", lambda m: m.pop("sha256")),
        ("digests is no list of 8", lambda m: m.update(digests=m["digests"][1:])),
        ("digests is no list of 8", lambda m: m.update(digests=3)),
        (r"plane-00.*lists under digests", lambda m: m["digests"].reverse()),
        ("sha256 is not that of the manifest", lambda m: m["geometry"].update(context_limit=500)),
        ("sha256 is not that of the manifest", lambda m: m.update(note="added")),
    ],
)
def test_a_manifest_that_was_tampered_with(tmp_path: Path, field: str, change: Any) -> None:
    filled().save(tmp_path)
    path = tmp_path / "store.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(mv.SnapshotError, match=field):
        mv.KvStore.load(tmp_path)


def test_a_sound_plane_of_another_session_is_refused(tmp_path: Path) -> None:
    filled().save(tmp_path / "own")
    other = mv.KvStore(SMALL, 100)
    other.append_batch(0, *(2 * each for each in rows(0, 50)))
    other.save(tmp_path / "other")
    for target, source in zip(
        *(sorted((tmp_path / n).glob("plane-*")) for n in ("own", "other")), strict=True
    ):
        if "plane-03" in target.name:
            target.write_bytes(source.read_bytes())
    with pytest.raises(mv.SnapshotError, match=r"plane-03-.*lists under digests"):
        mv.KvStore.load(tmp_path / "own")


KILLED = """
import os, signal, sys
import muser_viz as mv
from muser_viz import snapshot
store = mv.KvStore.load("session")
row = mv.seeded(9, store.geometry.n_layers, store.geometry.kv_dim)
store.append(store.next_position, row, row)
left = int(sys.argv[1])
def counted(act):
    def dies(*arguments):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return act(*arguments)
    return dies
snapshot.os.replace = counted(os.replace)
snapshot.os.fsync = counted(os.fsync)
snapshot.save_file = counted(snapshot.save_file)
store.save("session")
print("saved")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("after", [0, 1, 2, 11, 24, 25, 26])
def test_a_save_that_is_killed_leaves_the_earlier_one_whole(tmp_path: Path, after: int) -> None:
    store = filled()
    store.save(tmp_path / "session")
    before = everything(store)
    command = [sys.executable, "-c", KILLED, str(after)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    back = mv.KvStore.load(tmp_path / "session")
    if after < 26:  # 8 planes: write, flush, rename each; then the manifest's flush and rename
        assert ran.returncode == -9, ran.stderr
        assert everything(back) == before
    else:
        assert ran.stdout == "saved\n", ran.stderr
        assert back.next_position == store.next_position + 1
    back.save(tmp_path / "session")
    assert len(list((tmp_path / "session").iterdir())) == SMALL.n_layers + 1


def test_turned_has_the_same_rows_elsewhere() -> None:
    store = filled()
    assert everything(store.turned()) == everything(store)
    other = store.turned(5)
    for layer, (own, turned) in enumerate(zip(store.planes, other.planes, strict=True)):
        assert np.array_equal(own.keys(), turned.keys())
        assert turned.origin_physical == (5 if layer in SMALL.sliding_layers else 0)
    assert other.next_position == store.next_position
    with pytest.raises(mv.MuserVizError, match="rotation"):
        store.turned(4096)


def test_a_claimed_layer_counts_as_written() -> None:
    store = filled()
    assert store.open_step is None
    with pytest.raises(mv.InputError, match="written twice"), store.step(50) as step:
        assert store.open_step is step
        step.claim(0)
        step.claim(0)
    with pytest.raises(mv.InputError, match="had ended"):
        step.claim(1)
