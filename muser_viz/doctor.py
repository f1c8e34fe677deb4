"""``muser-viz doctor``: what runs the kernels here, and does it give the right bits."""

from __future__ import annotations

import sys

from tqdm import tqdm

from muser_viz import devices, selftest


def main(steps: int = selftest.STEPS) -> int:
    """Print the backends and test each that runs; 0 where all gave NumPy's bits, else 1."""
    table = devices.backends()
    print(table)
    twice = devices.installed_twice()
    if twice:
        print(twice)
    print(f"\nself-test: {steps:,} chained stores and reads in each layout, all bits against NumPy's")
    failed = twice is not None
    for status in table:
        if not status.available or status.name == "numpy":
            continue
        for head_major in (False, True):
            layout = "head-major" if head_major else "token-major"
            try:
                verdict = _followed(status.name, head_major, steps, f"{status.name} {layout}")
            except Exception as error:
                verdict = f"{type(error).__name__}: {error}"
            print(f"{status.name:6} {layout:11} {verdict or 'every bit equal'}")
            failed = failed or bool(verdict)
    return 1 if failed else 0


def _followed(name: str, head_major: bool, steps: int, label: str) -> str:
    """The verdict of one self-test, its steps shown as they go."""
    testing = selftest.run(name, head_major, steps)
    with tqdm(total=2 * steps, desc=label, leave=False, disable=not sys.stderr.isatty()) as progress:
        while True:
            try:
                next(testing)
            except StopIteration as ended:
                return str(ended.value)
            progress.update()
