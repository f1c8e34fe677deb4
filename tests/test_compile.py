from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import muser_viz as mv
from muser_viz import resources
from muser_viz.devices import compile as compiler

PROGRAM = f"""
import sys
sys.path[:0] = {sys.path!r}
import muser_viz as mv
plane = mv.KvPlane(8, 2, 4, backend="host")
plane.append_batch(0, mv.seeded(1, 9, 8), mv.seeded(2, 9, 8))
print(mv.hexbits(plane.raw_key())[0, 0])
"""


@pytest.fixture(autouse=True)
def _look_again() -> Any:
    compiler.find.cache_clear()
    yield
    compiler.find.cache_clear()


def start(environment: dict[str, str], program: str = PROGRAM) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_processes_that_start_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "cache"
    found = [outcome(p) for p in [start({"MUSER_VIZ_CACHE": str(folder)}) for _ in range(3)]]
    assert {code for code, _, _ in found} == {0}, found
    assert len({out for _, out, _ in found}) == 1
    assert [path.suffix for path in folder.iterdir()] == [".so"]


def test_a_cache_folder_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    code, out, err = outcome(start({"MUSER_VIZ_CACHE": str(blocked / "cache")}))
    assert (code, err) == (0, "")
    assert out.startswith("0x")


def test_other_flags_and_other_content_are_other_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSER_VIZ_CACHE", str(tmp_path))
    included = tmp_path / "included.h"
    included.write_text("1")
    source = f'extern "C" int one() {{ return\n#include "{included}"\n; }}'
    first = compiler.shared_object("one", source, (included,))
    stamp = first.stat().st_mtime_ns
    assert compiler.shared_object("one", source, (included,)) == first
    assert first.stat().st_mtime_ns == stamp
    assert compiler.shared_object("one", source + " ", (included,)) != first
    monkeypatch.setenv("MUSER_VIZ_CXXFLAGS", "-O1")
    compiler.find.cache_clear()
    assert compiler.shared_object("one", source, (included,)) != first
    monkeypatch.delenv("MUSER_VIZ_CXXFLAGS")
    compiler.find.cache_clear()
    included.write_text("2")
    assert compiler.shared_object("one", source, (included,)) != first


def test_a_syntax_error_is_told_in_the_compilers_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSER_VIZ_CACHE", str(tmp_path))
    with pytest.raises(mv.KernelError, match=r"(?s)broken: .*refused it:\n.*broken.cpp:1:.*error"):
        compiler.shared_object("broken", "half f( { return 1; }", ())
    assert not list(tmp_path.iterdir())


def test_a_kernel_file_with_a_syntax_error(tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    for path in resources.folder("kernels").glob("*.metal"):
        text = path.read_text(encoding="utf-8")
        if path.stem == "muser_kv_store_batch_f16":
            text = text.replace("thread_index % kv_dim;", "thread_index %% kv_dim;")
        (kernels / path.name).write_text(text, encoding="utf-8")
    program = PROGRAM.replace(
        "import muser_viz as mv\n",
        "import muser_viz as mv, pathlib\nfrom muser_viz import resources\n"
        f"resources.folder = lambda name: pathlib.Path({str(tmp_path)!r}, name)\n",
    )
    code, _, err = outcome(start({}, program))
    said = err[err.index("KernelError") :]
    assert code == 1
    assert "muser_kv_store_batch_f16.metal:" in said
    assert "error: expected" in said


@pytest.mark.parametrize(
    ("cxx", "said"), [("no-such-compiler-anywhere", "No such file"), ("false", "exit status 1")]
)
def test_a_compiler_that_will_not_do(monkeypatch: pytest.MonkeyPatch, cxx: str, said: str) -> None:
    monkeypatch.setenv("CXX", cxx)
    with pytest.raises(mv.BackendUnavailable, match=rf"(?s){said}.*install g\+\+ 12"):
        compiler.find()


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(compiler.shutil, "which", lambda _: None)
    monkeypatch.setattr(compiler, "find_spec", lambda _: None)
    with pytest.raises(mv.BackendUnavailable, match=r"none of g\+\+"):
        compiler.find()


def test_a_damaged_object_is_made_anew(tmp_path: Path) -> None:
    environment = {"MUSER_VIZ_CACHE": str(tmp_path)}
    right = outcome(start(environment))
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:1000])
    assert outcome(start(environment)) == right
    assert right[0] == 0


@pytest.mark.parametrize("folder", [".", "here"])
def test_a_relative_cache_folder(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert outcome(start({"MUSER_VIZ_CACHE": folder}))[0] == 0
    assert list((tmp_path / folder).glob("*.so"))


@pytest.mark.parametrize("variable", ["CXX", "MUSER_VIZ_CXXFLAGS"])
def test_an_unclosed_quotation(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, 'g++ "')
    with pytest.raises(mv.BackendUnavailable, match=rf"{variable} is .*No closing quotation"):
        compiler.find()
