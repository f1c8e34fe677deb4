from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import muser_viz as mv
from muser_viz import cli, doctor

JUPYTER = [sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1"]


class Runs:
    """Stands in for subprocess.run: keeps the commands, gives one exit status."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.status = 0

    def __call__(self, command: list[str], **_: Any) -> SimpleNamespace:
        self.commands.append(command)
        return SimpleNamespace(returncode=self.status)


@pytest.fixture
def lessons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of lessons that stands in for the package's own."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("02.ipynb", "01.ipynb", "notes.txt"):
        (source / name).write_text(f"from {name}", encoding="utf-8")
    monkeypatch.setattr(cli.resources, "folder", lambda name: tmp_path / {"notebooks": "source"}[name])
    return source


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    seen = Runs()
    monkeypatch.setattr(cli.subprocess, "run", seen)
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    return seen


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_lessons_are_copied(lessons: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "mine"
    copied = cli.copy_lessons(folder)
    assert copied == [folder / "01.ipynb", folder / "02.ipynb"]
    assert contents(folder) == {"01.ipynb": "from 01.ipynb", "02.ipynb": "from 02.ipynb"}
    assert len(contents(lessons)) == 3


@pytest.mark.usefixtures("lessons")
def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "01.ipynb").write_text("mine", encoding="utf-8")
    assert cli.copy_lessons(tmp_path) == [tmp_path / "02.ipynb"]
    assert (tmp_path / "01.ipynb").read_text(encoding="utf-8") == "mine"
    (tmp_path / "02.ipynb").write_text("mine too", encoding="utf-8")
    assert cli.copy_lessons(tmp_path) == []
    assert (tmp_path / "02.ipynb").read_text(encoding="utf-8") == "mine too"


@pytest.mark.usefixtures("lessons")
def test_lab_opens_the_folder(runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    assert cli.main(["lab", str(folder)]) == 0
    assert runs.commands == [[*JUPYTER, str(folder)]]
    assert capsys.readouterr().out == f"copied 2 lessons to {folder}\n"
    assert sorted(contents(folder)) == ["01.ipynb", "02.ipynb"]
    assert cli.main(["lab", str(folder)]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("lessons")
def test_lab_has_a_folder_of_its_own(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cli.main(["lab"])
    assert runs.commands == [[*JUPYTER, "muser-viz-lessons"]]
    assert sorted(contents(tmp_path / "muser-viz-lessons")) == ["01.ipynb", "02.ipynb"]


@pytest.mark.usefixtures("lessons")
@pytest.mark.parametrize("user", [0, 1, 1000])
def test_only_root_allows_root(
    user: int, runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user, raising=False)
    cli.main(["lab", str(tmp_path)])
    allowed = ["--allow-root"] if user == 0 else []
    assert runs.commands == [[*JUPYTER, *allowed, str(tmp_path)]]


@pytest.mark.usefixtures("lessons")
def test_where_there_is_no_root(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "geteuid")
    cli.main(["lab", str(tmp_path)])
    assert runs.commands == [[*JUPYTER, str(tmp_path)]]


@pytest.mark.usefixtures("lessons")
def test_further_options_go_to_jupyterlab(runs: Runs, tmp_path: Path) -> None:
    cli.main(["lab", str(tmp_path), "--no-browser", "--port=9999"])
    assert runs.commands == [[*JUPYTER, "--no-browser", "--port=9999", str(tmp_path)]]


@pytest.mark.usefixtures("lessons")
def test_without_a_folder_an_options_value_is_none(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli.main(["lab", "--port", "9999"])
    assert runs.commands == [[*JUPYTER, "--port", "9999", str(cli.LESSONS)]]
    assert (tmp_path / cli.LESSONS).is_dir()
    assert not (tmp_path / "9999").exists()


@pytest.mark.usefixtures("lessons")
def test_lab_ends_as_jupyterlab_ends(runs: Runs, tmp_path: Path) -> None:
    runs.status = 7
    assert cli.main(["lab", str(tmp_path)]) == 7


@pytest.mark.usefixtures("lessons")
def test_a_file_where_the_folder_should_be(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine", encoding="utf-8")
    assert cli.main(["lab", str(taken)]) == 1
    assert runs.commands == []
    assert capsys.readouterr().err.startswith("muser-viz: ")
    assert taken.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("status", [0, 1])
def test_doctor_ends_as_it_found(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "main", lambda: status)
    assert cli.main(["doctor"]) == status


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (mv.BackendUnavailable("no compiler here"), 1, "muser-viz: no compiler here\n"),
        (OSError("disk full"), 1, "muser-viz: disk full\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_end_in_a_line_and_a_status(
    error: BaseException,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def failing() -> int:
        raise error

    monkeypatch.setattr(doctor, "main", failing)
    assert cli.main(["doctor"]) == status
    assert capsys.readouterr().err == said


def test_an_error_of_the_program_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> int:
        raise TypeError("a slip")

    monkeypatch.setattr(doctor, "main", failing)
    with pytest.raises(TypeError, match="a slip"):
        cli.main(["doctor"])


@pytest.mark.parametrize("extra", [["--fast"], ["here"], ["--port=1", "here"]])
def test_doctor_takes_no_arguments(
    extra: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "main", lambda: pytest.fail("doctor ran"))
    with pytest.raises(SystemExit) as ended:
        cli.main(["doctor", *extra])
    assert ended.value.code == 2
    assert f"unrecognized arguments: {' '.join(extra)}" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["operate"], ["--fast"]])
def test_without_a_known_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "usage: muser-viz" in capsys.readouterr().err


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"muser-viz {mv.__version__}\n"


def test_the_package_is_a_command() -> None:
    root = Path(mv.__file__).parents[1]
    command = [sys.executable, "-m", "muser_viz", "--version"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"muser-viz {mv.__version__}\n")


def test_the_claims_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["claims", "15.8"]) == 0
    assert "printed 95.7 %; derived 95.51 %" in capsys.readouterr().out
    assert cli.main(["claims", "16.1"]) == 1
    assert "sections are 15.1" in capsys.readouterr().err
