"""Every error that the package raises on purpose.

Each message says what was asked, what holds, and what to do.
"""

from __future__ import annotations


class MuserVizError(Exception):
    """The root of the package's errors."""


class InputError(MuserVizError, ValueError):
    """A value is of the wrong shape, dtype or range. Nothing was changed."""


class CacheDiscontinuity(MuserVizError):
    """A position was skipped or replayed (§15.5). Nothing was changed.

    Attributes: ``layer`` (int, or None for a bare ring), ``expected`` and
    ``got`` (token positions).
    """

    def __init__(self, layer: int | None, expected: int, got: int) -> None:
        self.layer = layer
        self.expected = expected
        self.got = got
        where = "" if layer is None else f"layer {layer}: "
        kind = "a replay" if got < expected else "a skip"
        super().__init__(
            f"{where}position {got} is refused ({kind}): {expected} is next; "
            f"nothing was changed: append position {expected}"
        )

    def __reduce__(self) -> tuple[type[CacheDiscontinuity], tuple[int | None, int, int]]:
        return (type(self), (self.layer, self.expected, self.got))


class ContextExhausted(MuserVizError):
    """A position lies past the store's ``max_context``. Nothing was changed."""


class NotLive(MuserVizError):
    """A token that no row holds was asked for, or an empty plane was read."""


class SnapshotError(MuserVizError):
    """A snapshot, or a file of one, is not sound; the message names the field."""


class KernelError(MuserVizError):
    """A kernel file does not parse or compile; the message has the compiler's words."""


class BackendUnavailable(MuserVizError):
    """The backend asked for cannot run here; the message says why."""
