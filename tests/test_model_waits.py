"""When a GPU has time to begin: the clocks of a thread that works, and of one that waits."""

from __future__ import annotations

import time

import pytest

from muser_viz.model import waits
from muser_viz.model.waits import Waits


@pytest.mark.parametrize(
    ("worked", "says"), [(10.0, False), (9.5, False), (8.5, True), (0.0, True)], ids=lambda given: f"{given}"
)
def test_a_tenth_of_the_time_is_waiting(monkeypatch: pytest.MonkeyPatch, worked: float, says: bool) -> None:
    """From token to token, not from the first one on: what a thread did before counts no more."""
    passed, busy = [0.0], [0.0]
    monkeypatch.setattr(waits, "perf_counter", lambda: passed[0])
    monkeypatch.setattr(waits, "thread_time", lambda: busy[0])
    asked = Waits()
    assert asked(), "nothing was queued before the first token"
    for before in (0.0, 10.0):
        passed[0], busy[0] = passed[0] + 10, busy[0] + before
        asked()
        passed[0], busy[0] = passed[0] + 10, busy[0] + worked
        assert asked() is says


def test_a_thread_that_sleeps_waits() -> None:
    asked = Waits()
    asked()
    time.sleep(0.05)
    assert asked()
