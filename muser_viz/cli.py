"""The command ``muser-viz``."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from muser_viz import __version__, resources
from muser_viz.errors import MuserVizError

LESSONS = Path("muser-viz-lessons")


def copy_lessons(folder: Path) -> list[Path]:
    """Copy the lessons that ``folder`` lacks; nothing there is overwritten. The copies made."""
    folder.mkdir(parents=True, exist_ok=True)
    copied = []
    for lesson in sorted(resources.folder("notebooks").glob("*.ipynb")):
        target = folder / lesson.name
        if not target.exists():
            shutil.copyfile(lesson, target)
            copied.append(target)
    return copied


def lab(folder: Path, arguments: Sequence[str]) -> int:
    """Open the lessons of ``folder`` in JupyterLab: on localhost, with a token."""
    copied = copy_lessons(folder)
    if copied:
        print(f"copied {len(copied)} lessons to {folder}")
    command = [sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1"]
    if getattr(os, "geteuid", lambda: 1)() == 0:
        command.append("--allow-root")
    return subprocess.run([*command, *arguments, str(folder)], check=False).returncode


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    parser = argparse.ArgumentParser(prog="muser-viz", description="The KV store of chapter 15, to be run.")
    parser.add_argument("--version", action="version", version=f"muser-viz {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser(
        "lab", add_help=False, help="[FOLDER] [options of JupyterLab]: open the lessons there"
    )
    commands.add_parser("doctor", help="which backends run here, and a self-test of each")
    listed = commands.add_parser("claims", help="the chapter's claims, what was derived, and the verdicts")
    listed.add_argument("section", nargs="?", help="one section, such as 15.7")
    exported = commands.add_parser(
        "export", help="the lessons as HTML pages that need no kernel and no network"
    )
    exported.add_argument("folder", type=Path, help="a new folder, an empty one, or an earlier export")
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        if given[:1] == ["lab"] and not {"-h", "--help"} & set(given):
            named = len(given) > 1 and not given[1].startswith("-")
            return lab(Path(given[1]) if named else LESSONS, given[2:] if named else given[1:])
        asked = parser.parse_args(given)
        if asked.command == "claims":
            from muser_viz.ledger import claims

            print(claims(asked.section))
            return 0
        if asked.command == "export":
            from muser_viz.export import export_lessons

            pages = export_lessons(asked.folder)
            print(f"wrote {len(pages) - 1} lessons; open {pages[-1]}")
            return 0
        from muser_viz import doctor

        return doctor.main()
    except KeyboardInterrupt:
        return 130
    except (MuserVizError, OSError) as error:
        print(f"muser-viz: {error}", file=sys.stderr)
        return 1
