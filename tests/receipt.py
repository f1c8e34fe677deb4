"""What a machine's kernels gave, as a dated receipt: run there, keep what it writes.

    python tests/receipt.py --backend cuda FOLDER

writes ``DATE-DEVICE.json`` (device, versions, command, figures) and ``.log``
(what the commands printed) into FOLDER.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import io
import json
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import muser_viz as mv
from muser_viz.selftest import scan_digest

HERE = Path(__file__).parent
CASES = ("test_plane.py", "test_store.py", "test_readers.py", "test_devices.py", "test_selftest.py")

LEFT_OUT = ("mv.receipts()",)
"""Cells with these are not run: they list the receipts themselves."""

WIDGETS = r"mv\.(?:predict|exercise|RingPlayer|LayoutView|StoreView|BitsView|RotationSweep|Bill|Staging)\("


class NotShown:
    """In a widget's place, on a machine that has no browser to show one."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def check(self, *_: object) -> NotShown:
        """An exercise's answer, not graded."""
        return self

    def tour(self, *_: object) -> NotShown:
        """A speaker's stops, not gone to."""
        return self


def last_line(text: str, pattern: str) -> str:
    """The last line that matches, or the last line."""
    lines = text.strip().splitlines() or [""]
    return next((line.strip(" =") for line in reversed(lines) if re.search(pattern, line)), lines[-1])


def lessons() -> str:
    """Run the lessons' code on the backend in use: how many cells printed what is stored.

    Only print is compared; no widget is made, and the cell that lists receipts is left out.
    """
    verdicts = []
    for path in sorted((HERE.parent / "notebooks").glob("*.ipynb")):
        names: dict[str, object] = {"__name__": "__main__", "NotShown": NotShown}
        equal = printing = 0
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            stored = "".join("".join(output.get("text", "")) for output in cell.get("outputs", []))
            if cell["cell_type"] != "code" or any(name in source for name in LEFT_OUT):
                continue
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(re.sub(WIDGETS, "NotShown(", source), names)
            printing += bool(stored)
            equal += bool(stored) and printed.getvalue() == stored
        verdicts.append(f"{path.stem} {equal} of {printing} cells")
    return ", ".join(verdicts)


def in_mlx(log: str) -> str:
    """Of the sanitizer's reports, those that MLX's allocator caused: it moves recycled blocks whole."""
    reports = re.split(r"\n=+ +\n", log)
    caused = sum("Uninitialized access" in each and "move_to_unified_memory" in each for each in reports)
    every = sum("Uninitialized access" in each for each in reports)
    return (
        f"{every} reports, {caused} of them MLX's allocator moving a recycled block, {every - caused} others"
    )


def main() -> int:
    """Run everything and keep what it gave, good or bad."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--backend", required=True)
    asked = parser.parse_args()
    backend = str(asked.backend)
    python = sys.executable
    log: list[str] = []

    def ran(command: list[str], pattern: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parent)
        text = f"$ {' '.join(command)}\n{done.stdout}{done.stderr}exit status {done.returncode}\n"
        log.append(text.replace(str(asked.folder), "FOLDER").replace(python, "python"))
        return f"{last_line(done.stdout + done.stderr, pattern)} (exit status {done.returncode})"

    results: dict[str, str] = {
        "doctor": ran([python, "-m", "muser_viz", "doctor"], f"^{backend}.*head-major"),
        "cases": ran(
            [python, "-m", "pytest", "-q", "-k", backend, *(f"tests/{c}" for c in CASES)], "passed|failed"
        ),
    }
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if backend == "cuda" and Path(sanitizer).exists():
        program = "import sys; from muser_viz import doctor; sys.exit(doctor.main(steps=40))"
        for tool in ("memcheck", "initcheck"):
            command = [sanitizer, "--tool", tool, "--error-exitcode", "9", python, "-c", program]
            results[f"compute-sanitizer {tool}"] = ran(command, "ERROR SUMMARY")
        results["uninitialized reads"] = in_mlx(log[-1])
    mv.use_backend(backend)
    results["lessons' cells that printed what is stored"] = lessons()
    mv.use_backend(None)
    results["scan digest"] = scan_digest(backend)
    if mv.backends()["host"].available:
        results["scan digest of this machine's host backend"] = scan_digest("host")
    bench = asked.folder / "bench.json"
    ran([python, "tests/bench.py", "--json", str(bench)], "")
    ratios = json.loads(bench.read_text(encoding="utf-8")) if bench.exists() else {}
    bench.unlink(missing_ok=True)
    device = mv.backends()[backend].detail
    receipt = {
        "date": datetime.date.today().isoformat(),
        "backend": backend,
        "device": device,
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "host": mv.backends()["host"].detail,
        "versions": {name: metadata.version(name) for name in ("mlx", "numpy")},
        "muser_viz": mv.__version__,
        "command": f"python tests/receipt.py --backend {backend} FOLDER",
        "results": results,
        "bench": {name: round(ratio, 3) for name, ratio in ratios.items()},
    }
    name = re.sub(r"[^a-z0-9]+", "-", device.split(",")[0].lower()).strip("-")
    stem = asked.folder / f"{receipt['date']}-{name}"
    stem.with_suffix(".json").write_text(json.dumps(receipt, indent=1) + "\n", encoding="utf-8")
    stem.with_suffix(".log").write_text("\n".join(log), encoding="utf-8")
    print(json.dumps(receipt, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
