from __future__ import annotations

import os
import subprocess
import sys

import pytest

import muser_viz as mv
from muser_viz.devices import host

INTERRUPTED = """
import signal, time
import muser_viz as mv
plane = mv.KvPlane(2048, backend="host")
plane.append_batch(0, mv.seeded(1, 2048, 256), mv.seeded(2, 2048, 256))
query = mv.seeded(3, 32, 128)
mv.attend(plane, query)
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    mv.sweep_rotations(plane, query)
    print("ended")
except KeyboardInterrupt:
    print("interrupted")
print(mv.attend(plane, query).shape)
"""

FORKED = """
import multiprocessing
import muser_viz as mv
def work():
    plane = mv.KvPlane(64, backend="host")
    plane.append_batch(0, mv.seeded(1, 64, 256), mv.seeded(2, 64, 256))
    assert plane.len == 64
work()
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join(20)
print(child.exitcode)
"""


def said(program: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MUSER_VIZ_THREADS": "2"}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, (ran.returncode, ran.stderr)
    return ran.stdout


def test_an_interrupt_waits_for_the_kernels_that_still_run() -> None:
    assert said(INTERRUPTED).split("\n")[0] in ("interrupted", "ended")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_cores_of_its_own() -> None:
    assert said(FORKED).strip() == "0"


@pytest.mark.parametrize("asked", ["0", "-3", "1.5", " 4", "two", "\u00b2", "100000"])
def test_what_is_no_number_of_cores(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSER_VIZ_THREADS", asked)
    with pytest.raises(mv.InputError, match="MUSER_VIZ_THREADS"):
        host.workers()


def test_cores_that_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSER_VIZ_THREADS", "3")
    assert host.workers() == 3
    monkeypatch.delenv("MUSER_VIZ_THREADS")
    assert host.workers() >= 1
