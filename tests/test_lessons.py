"""The lessons as they are stored, and run again: twice in one kernel, from another folder."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from store_lessons import FOLDER

from muser_viz.lesson_page import VIEW, joined

LESSONS = sorted(FOLDER.glob("*.ipynb"))
FORBIDDEN = {
    "an absolute path": r"(?<![\w.])/(?:home|root|tmp|usr|work|Users|private|opt)/",
    "an address": r"\b0x[0-9a-fA-F]{9,}\b",
    "a timing": r"\b\d+(?:\.\d+)?\s?(?:ms|µs|seconds?)\b",
    "a warning": r"Warning\b",
    "a backend's name": r"\bbackend=",
}


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell: Any) -> list[str]:
    """What a cell printed or showed as text."""
    said = []
    for output in joined(cell.outputs):
        assert output.output_type != "error", output.get("evalue")
        if output.output_type == "stream":
            assert output.name == "stdout", output.text
            said.append(output.text)
        else:
            said.append(output.data.get("text/plain", ""))
    return said


@pytest.fixture(params=LESSONS, ids=lambda path: path.stem)
def lesson(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def test_there_are_lessons() -> None:
    assert len(LESSONS) >= 2
    assert all(re.fullmatch(r"\d\d-[a-z-]+|talk", path.stem) for path in LESSONS)


def test_it_is_executed_and_stripped(lesson: Path) -> None:
    notebook = nbformat.read(lesson, 4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert "widgets" not in notebook.metadata
    assert [cell.execution_count for cell in code(notebook)] == list(range(1, len(code(notebook)) + 1))
    for cell in code(notebook):
        for output in cell.outputs:
            assert VIEW not in output.get("data", {})


def test_nothing_of_this_machine_is_stored(lesson: Path) -> None:
    for cell in code(nbformat.read(lesson, 4)):
        for said in texts(cell):
            for what, pattern in FORBIDDEN.items():
                assert not re.search(pattern, said), f"{what} in {said!r}"


def test_every_picture_has_text(lesson: Path) -> None:
    for cell in code(nbformat.read(lesson, 4)):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                assert len(output.data["text/plain"]) > 20
                assert output.metadata["image/png"]["alt"] == output.data["text/plain"]


def test_twice_in_one_kernel_from_another_folder(lesson: Path, tmp_path: Path) -> None:
    stored = nbformat.read(lesson, 4)
    elsewhere = tmp_path / lesson.name
    shutil.copyfile(lesson, elsewhere)
    notebook = nbformat.read(elsewhere, 4)
    path = os.pathsep.join([str(FOLDER.parent), os.environ.get("PYTHONPATH", "")])
    client = NotebookClient(
        notebook, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}, timeout=60
    )
    with client.setup_kernel(env={**os.environ, "PYTHONPATH": path}):
        for _ in range(2):
            for index, cell in enumerate(notebook.cells):
                client.execute_cell(cell, index)
            assert [texts(cell) for cell in code(notebook)] == [texts(cell) for cell in code(stored)]
