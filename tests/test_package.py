"""The wheel: built, and used without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = """
import pathlib, sys
import muser_viz as mv
from muser_viz import cli, resources
assert pathlib.Path(mv.__file__).is_relative_to(sys.argv[1]), mv.__file__
assert resources.folder("kernels").is_relative_to(sys.argv[1])
plane = mv.KvPlane(8, 2, 4)
plane.append_batch(0, mv.seeded(1, 9, 8), mv.seeded(2, 9, 8))
assert plane.len == 8 and mv.receipts()
print([path.name for path in cli.copy_lessons(pathlib.Path("lessons"))])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(ROOT)],
        check=True,
        capture_output=True,
    )
    return next(out.glob("*.whl"))


def test_it_carries_kernels_receipts_and_lessons(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for kind, pattern in (("kernels", "*.metal"), ("kernels", "receipts/*.json"), ("notebooks", "*.ipynb")):
        files = sorted((ROOT / kind).glob(pattern))
        assert files
        assert {f"muser_viz/_data/{path.relative_to(ROOT).as_posix()}" for path in files} <= names
    assert "muser_viz/devices/shim/metal_stdlib" in names
    assert {"muser_viz/site/host.js", "muser_viz/site/page.html", "muser_viz/views/stage.css"} <= names
    assert not [name for name in names if name.startswith("tests") or "checkpoint" in name]


def test_it_works_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    unpacked = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(unpacked)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(unpacked)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "05-the-ring.ipynb" in ran.stdout
    assert (tmp_path / "lessons" / "05-the-ring.ipynb").is_file()
