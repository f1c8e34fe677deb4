"""The lessons as a folder of HTML pages that open from a file (``muser-viz export``)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
from tqdm import tqdm

from muser_viz import resources
from muser_viz.errors import BackendUnavailable, InputError, MuserVizError
from muser_viz.lesson_page import GENERATOR, Lesson, index_page, lesson_page


def export_lessons(folder: Path, lessons: Sequence[Path] | None = None) -> list[Path]:
    """Execute the lessons and write each as one page, and index.html; the pages written.

    ``folder``: not there yet, empty, or an earlier export, which is replaced; InputError
    for any other. ``lessons``: notebooks, left out: all of the package. A lesson that
    needs what is not installed here is shown as it is stored. MuserVizError where a
    lesson's cell fails otherwise. Nothing is written before all pages are made.
    """
    taken = sorted(resources.folder("notebooks").glob("*.ipynb")) if lessons is None else list(lessons)
    _free(folder)
    executed = {}
    for path in (progress := tqdm(taken, unit="lesson")):
        progress.set_postfix_str(path.stem)
        executed[path.stem] = _executed(path)
    described = [Lesson.of(stem, notebook) for stem, notebook in executed.items()]
    pages = {
        lesson.page: lesson_page(executed[lesson.stem], described, place)
        for place, lesson in enumerate(described)
    }
    return _written(folder, pages | {"index.html": index_page(described)})


def _executed(path: Path) -> Any:
    """The notebook after a run in a fresh kernel, in an empty folder, with the state of its widgets."""
    notebook = nbformat.read(path, 4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as empty:
        client = NotebookClient(
            notebook,
            kernel_name="python3",
            extra_arguments=["--log-level=ERROR"],
            resources={"metadata": {"path": empty}},
        )
        try:
            client.execute()
        except CellExecutionError as error:
            if error.ename == BackendUnavailable.__name__:  # as where mlx-lm is not installed
                tqdm.write(f"{path.name}: {error.evalue}; the page shows what is stored in it")
                return nbformat.read(path, 4)  # type: ignore[no-untyped-call]
            raise MuserVizError(
                f"{path.name}: a cell raised {error.ename}: {error.evalue}; nothing was written"
            ) from error
        except (CellControlSignal, DeadKernelError) as error:
            raise MuserVizError(f"{path.name}: {error}; nothing was written") from error
    return notebook


def _free(folder: Path) -> None:
    """Refuse a folder in which something would be lost."""
    if folder.is_dir():
        foreign = next((entry for entry in sorted(folder.iterdir()) if not _ours(entry)), None)
        if foreign is None:
            return
        held = f"{folder} holds {foreign.name}, which no export wrote"
    elif folder.exists() or folder.is_symlink():
        held = f"{folder} is no folder"
    else:
        return
    raise InputError(f"{held}; nothing was changed: name a new folder, an empty one, or an earlier export")


def _ours(entry: Path) -> bool:
    if entry.suffix != ".html" or entry.is_symlink() or not entry.is_file():
        return False
    with entry.open(encoding="utf-8", errors="replace") as page:
        return GENERATOR in page.read(4096)


def _written(folder: Path, pages: dict[str, str]) -> list[Path]:
    """Write the pages aside, then move them to their place."""
    whole = folder.absolute()
    whole.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".muser-viz-export-", dir=whole.parent) as aside:
        made = Path(aside) / "pages"
        made.mkdir()
        for name, page in pages.items():
            (made / name).write_text(page, encoding="utf-8", newline="\n")
        _free(folder)  # it took a minute; look again
        if not whole.exists():
            made.rename(whole)
        else:
            for name in pages:
                os.replace(made / name, whole / name)
            for entry in whole.iterdir():
                if entry.name not in pages:
                    entry.unlink()
    return [folder / name for name in pages]
