"""A store in the browser, thread by thread and then all at once: what each reads and writes (§15.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import traitlets

from muser_viz.checks import whole
from muser_viz.pictures import Picture
from muser_viz.thread_picture import checked, draw_threads, same_threads
from muser_viz.threads import StoreLaunch
from muser_viz.views.view import View, front

_COLUMNS = ("source_row", "element", "source", "row", "cell")


def _told(launch: StoreLaunch) -> dict[str, Any]:
    layout = launch.layout
    sizes = {"capacity": layout.capacity, "n_kv_heads": layout.n_kv_heads, "head_dim": layout.head_dim}
    return {
        "kernel": launch.kernel,
        "name": layout.name,
        "head_major": layout.head_major,
        "scalars": dict(launch.scalars),
        **sizes,
    }


class StoreView(View):
    """One dispatch of a store kernel: its threads, the chunk, and the plane (§15.4).

    ``launches``: one StoreLaunch of ``store_launch(plane, count)``, or the same store
    in both layouts. ``past``: threads past the guard, which do nothing. ``step``: the
    thread that runs; -1: none has; the number of threads: all at once. The reader
    steps, and sees what the kernel is told and the thread's index arithmetic.

    In a page without widgets it is the picture of the step; as text, its sentence and
    the cells written by then. InputError for what ``draw_threads`` refuses.
    """

    _esm, _css = front("store_view")

    told: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)
    """Of each launch: the kernel, its scalars, and the plane's layout."""
    threads = traitlets.Bytes(b"").tag(sync=True)
    """Of each launch, of each thread: source row, element, source, row, cell, ``<f8``; -1 past the guard."""
    count = traitlets.Int(0).tag(sync=True)
    step = traitlets.Int(-1).tag(sync=True, state=True)

    def __init__(self, *launches: StoreLaunch, past: int = 4, step: int = -1) -> None:
        self._past = checked(launches, past)
        same_threads(launches)
        self.launches = launches
        count = launches[0].grid + self._past
        tables = [launch.threads(count) for launch in launches]
        packed = [[table[name] for name in _COLUMNS] for table in tables]
        super().__init__(
            told=[_told(launch) for launch in launches],
            threads=np.array(packed, "<f8").transpose(0, 2, 1).tobytes(),
            count=count,
            step=whole("step", step, -1, count),
        )

    def show(self, step: int) -> None:
        """Show another step; InputError outside -1 .. the number of threads."""
        self.put(step=whole("step", step, -1, self.count))

    def picture(self) -> Picture:
        """The step that Python set."""
        return draw_threads(*self.launches, past=self._past, step=self.step)
