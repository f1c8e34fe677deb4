"""Work that must end although the reader interrupts the kernel."""

from __future__ import annotations

from collections.abc import Callable


def finished(act: Callable[[], object]) -> None:
    """Run ``act``, from the start again where an interrupt breaks in: it must bear being repeated."""
    while True:
        try:
            act()
        except KeyboardInterrupt:
            continue
        return
