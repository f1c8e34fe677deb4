"""Whether a thread waits between tokens (§15.10): then a GPU has time to begin with the next one."""

from __future__ import annotations

from time import perf_counter, thread_time

_SHARE = 0.1
"""Of the time from token to token, from which a thread counts as waiting."""


class Waits:
    """Called once a token: whether the calling thread waited since the last one, and did not only work.

    Where a model is queued more slowly than a GPU runs it, no thread waits, and to begin
    early makes the queueing longer and nothing shorter.
    """

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None

    def __call__(self) -> bool:
        now, last = (perf_counter(), thread_time()), self._last
        self._last = now
        if last is None:
            return True
        passed, worked = now[0] - last[0], now[1] - last[1]
        return passed - worked > _SHARE * passed
