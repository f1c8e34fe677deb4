"""``muser-viz export``: the folder it writes, and those it does not touch."""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

import muser_viz as mv
from muser_viz import cli, export
from muser_viz.export import export_lessons
from muser_viz.lesson_page import GENERATOR

EXECUTED = export._executed


def notebook(folder: Path, name: str, *cells: str) -> Path:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(made, folder / name)
    return folder / name


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two notebooks that are taken as executed."""
    source = tmp_path / "source"
    source.mkdir()
    monkeypatch.setattr(export, "_executed", lambda path: nbformat.read(path, 4))
    return [notebook(source, name, "1") for name in ("01.ipynb", "02.ipynb")]


def test_every_lesson_is_a_page_of_at_most_900_kb(site: Path) -> None:
    stems = sorted(path.stem for path in (export.resources.folder("notebooks")).glob("*.ipynb"))
    assert sorted(path.name for path in site.iterdir()) == sorted(
        [*(f"{stem}.html" for stem in stems), "index.html"]
    )
    sizes = {path.name: path.stat().st_size for path in site.iterdir()}
    assert max(sizes.values()) <= 900_000, sizes
    index = (site / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'<a href="([^"]+)\.html">', index) == stems


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.iterdir():
        page = path.read_text(encoding="utf-8")
        markup = re.sub(r"<(script|style)\b[^>]*>.*?</\1>", "", page, flags=re.DOTALL)
        assert re.findall(r'<link[^>]*href="([^"]*)"', markup) == ["data:,"]
        assert all(src.startswith("data:image/png;base64,") for src in re.findall(r'\bsrc="([^"]*)"', markup))
        assert not re.search(r"<(iframe|object|embed|base|form|video|audio|source)\b|\bon\w+=\"", markup)
        for inside in re.findall(r"<(?:script|style)\b[^>]*>(.*?)</(?:script|style)>", page, re.DOTALL):
            assert not re.search(
                r"@import|url\((?!#)|^import |\bimport\(|\bfetch\(|XMLHttpRequest|WebSocket", inside
            )
            assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", inside)


def test_the_policy_names_each_script_of_the_page(site: Path) -> None:
    for path in site.iterdir():
        page = path.read_text(encoding="utf-8")
        policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])  # type: ignore[index]
        scripts = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
        wanted = {
            f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts
        }
        listed = re.search(r"script-src ([^;]*);", policy)
        assert set(listed[1].split()) == (wanted or {"'none'"})  # type: ignore[index]
        assert policy.startswith("default-src 'none'; ")
        assert len(re.findall(r"<script", page)) == len(scripts) + (1 if scripts else 0)


def test_a_kind_of_view_is_inlined_once(site: Path) -> None:
    page = (site / "05-the-ring.html").read_text(encoding="utf-8")
    names = re.findall(r"\(globalThis\.muserViews \?\?= \{\}\)\.(\w+) = ", page)
    assert len(names) == len(set(names))
    assert page.count("class Steps {") == 1
    assert len(re.findall(r'data-model="', page)) > len(names)


def test_a_cell_s_output_is_what_a_fresh_kernel_prints(tmp_path: Path) -> None:
    lesson = notebook(tmp_path, "a.ipynb", "import os\nprint(sorted(os.listdir()), '<&>')", "1 + 1")
    pages = export_lessons(tmp_path / "site", [lesson])
    assert pages == [tmp_path / "site" / "a.html", tmp_path / "site" / "index.html"]
    page = pages[0].read_text(encoding="utf-8")
    assert "<pre>[] &lt;&amp;&gt;\n</pre>" in page
    assert "<pre>2</pre>" in page
    assert nbformat.read(lesson, 4).cells[0].outputs == []


def test_a_cell_that_fails_leaves_everything_as_it_was(
    tmp_path: Path, quick: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = notebook(tmp_path, "03.ipynb", "1 / 0")
    export_lessons(tmp_path / "site", quick)
    before = contents(tmp_path)
    monkeypatch.setattr(export, "_executed", EXECUTED)
    with pytest.raises(
        mv.MuserVizError, match=r"03\.ipynb: a cell raised ZeroDivisionError: division by zero"
    ):
        export_lessons(tmp_path / "site", [failing])
    assert contents(tmp_path) == before


def test_a_lesson_that_needs_more_than_is_here_is_shown_as_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs = "import muser_viz as mv\nraise mv.BackendUnavailable('mlx-lm is not here')"
    stored = notebook(tmp_path, "needs.ipynb", needs)
    held = nbformat.read(stored, 4)
    held.cells[-1].outputs = [nbformat.v4.new_output("stream", text="what it printed elsewhere")]
    nbformat.write(held, stored)
    export_lessons(tmp_path / "site", [stored])
    assert "what it printed elsewhere" in (tmp_path / "site" / "needs.html").read_text(encoding="utf-8")
    assert "needs.ipynb: mlx-lm is not here; the page shows what is stored" in capsys.readouterr().out


def test_an_earlier_export_is_replaced_and_an_empty_folder_filled(tmp_path: Path, quick: list[Path]) -> None:
    folder = tmp_path / "deep" / "site"
    export_lessons(folder, quick)
    assert sorted(contents(folder)) == ["01.html", "02.html", "index.html"]
    inode = folder.stat().st_ino
    export_lessons(folder, quick[1:])
    assert sorted(contents(folder)) == ["02.html", "index.html"]
    assert folder.stat().st_ino == inode  # a shell that stands in it still does
    (tmp_path / "empty").mkdir()
    export_lessons(tmp_path / "empty", quick)
    assert len(contents(tmp_path / "empty")) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "empty", "source"]


@pytest.mark.parametrize(
    "foreign",
    ["notes.txt", "mine.html", "deep/a.html", ".hidden"],
)
def test_a_folder_with_something_else_in_it_is_refused(
    tmp_path: Path, quick: list[Path], foreign: str
) -> None:
    folder = tmp_path / "site"
    export_lessons(folder, quick)
    named = Path(foreign).parts[0]
    (folder / foreign).parent.mkdir(exist_ok=True)
    (folder / foreign).write_text("<!doctype html>mine", encoding="utf-8")
    before = contents(tmp_path)
    with pytest.raises(mv.InputError, match=rf"holds {named}, which no export wrote; nothing was changed"):
        export_lessons(folder, quick)
    assert contents(tmp_path) == before


def test_a_link_to_a_page_is_not_a_page(tmp_path: Path, quick: list[Path]) -> None:
    elsewhere = tmp_path / "elsewhere.html"
    elsewhere.write_text(GENERATOR, encoding="utf-8")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "01.html").symlink_to(elsewhere)
    with pytest.raises(mv.InputError, match=r"holds 01\.html"):
        export_lessons(tmp_path / "site", quick)


@pytest.mark.parametrize("broken", [False, True])
def test_what_is_no_folder_is_refused(tmp_path: Path, quick: list[Path], broken: bool) -> None:
    taken = tmp_path / "taken"
    if broken:
        taken.symlink_to(tmp_path / "nowhere")
    else:
        taken.write_text("mine", encoding="utf-8")
    with pytest.raises(mv.InputError, match="taken is no folder; nothing was changed"):
        export_lessons(taken, quick)
    assert taken.is_symlink() == broken


def test_what_came_into_the_folder_meanwhile_stays(
    tmp_path: Path, quick: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site"

    def slow(path: Path) -> Any:
        folder.mkdir(exist_ok=True)
        (folder / "mine.txt").write_text("mine", encoding="utf-8")
        return nbformat.read(path, 4)

    monkeypatch.setattr(export, "_executed", slow)
    with pytest.raises(mv.InputError, match=r"holds mine\.txt"):
        export_lessons(folder, quick)
    assert list(contents(folder)) == ["mine.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site", "source"]


def test_a_disk_that_fails_leaves_the_earlier_export(
    tmp_path: Path, quick: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site"
    export_lessons(folder, quick)
    before = contents(tmp_path)

    def full(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="disk full"):
        export_lessons(folder, quick)
    assert contents(tmp_path) == before


def test_the_command(
    tmp_path: Path, quick: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(export.resources, "folder", lambda _: quick[0].parent)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["export", "site"]) == 0
    assert capsys.readouterr().out == f"wrote 2 lessons; open {os.path.join('site', 'index.html')}\n"
    (tmp_path / "site" / "mine").touch()
    assert cli.main(["export", "site"]) == 1
    assert "muser-viz: site holds mine, which no export wrote" in capsys.readouterr().err
