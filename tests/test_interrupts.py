from __future__ import annotations

import pytest

from muser_viz.interrupts import finished


def test_it_starts_again_after_an_interrupt() -> None:
    tries = []

    def act() -> None:
        tries.append(1)
        if len(tries) < 4:
            raise KeyboardInterrupt

    finished(act)
    assert len(tries) == 4


def test_another_error_is_the_callers() -> None:
    with pytest.raises(ZeroDivisionError):
        finished(lambda: 1 // 0)
