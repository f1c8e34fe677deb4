"""``make lessons``: execute the lessons and store what they print and draw, without widget state."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from tqdm import tqdm

from muser_viz.lesson_page import VIEW, joined

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"


def stripped(notebook: Any) -> Any:
    """The notebook without widget views and state, times of execution, or the kernel's own version."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {key: value for key, value in cell.metadata.items() if key != "execution"}
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(VIEW, None)
            output.get("metadata", {}).pop(VIEW, None)
    return notebook


def executed(path: Path) -> Any:
    """The notebook after a run from the top in a fresh kernel."""
    notebook = nbformat.read(path, 4)
    NotebookClient(
        notebook, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    return notebook


def main() -> None:
    """Execute and store the lessons named on the command line, or all."""
    names = sys.argv[1:]
    for path in tqdm([p for p in sorted(FOLDER.glob("*.ipynb")) if not names or p.name in names]):
        nbformat.write(stripped(executed(path)), path)


if __name__ == "__main__":
    main()
