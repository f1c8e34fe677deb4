"""Stepping a ring in the browser: a trace goes in, or a live plane (§15.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import traitlets

from muser_viz.checks import whole
from muser_viz.errors import InputError, MuserVizError
from muser_viz.inputs import seeded
from muser_viz.pictures import Picture, draw_ring
from muser_viz.plane import KvPlane
from muser_viz.ring import Ring
from muser_viz.trace import RingTrace
from muser_viz.views.view import View, front

F32 = npt.NDArray[np.float32]
Feed = Callable[[int], tuple[F32, F32]]
SPEEDS = (1, 4, 15, 60, 240)


def _state(ring: Ring) -> dict[str, int]:
    return {
        "capacity": ring.capacity,
        "len": ring.len,
        "origin_logical": ring.origin_logical,
        "origin_physical": ring.origin_physical,
    }


class RingPlayer(View):
    """Step, back, play and jump over a trace, as a ring or as a grid (§15.5).

    ``source``: a RingTrace, played by the browser alone; or a KvPlane, which each
    step past the last one makes store a row: ``feed(position)`` gives its key and
    value (f32, ``(kv_dim,)``; left out: seeded ones), and the f16 words that landed
    are shown. ``step``: the step shown first (-1: before the first). ``mode``: "ring"
    or "grid". ``speed``: steps a second of play, one of 1, 4, 15, 60, 240.

    In a page without widgets it is the picture of the step; as text, its sentence.
    InputError for a step outside the trace, and another source, mode or speed.
    """

    _esm, _css = front("ring_player")

    start = traitlets.Dict().tag(sync=True)
    steps = traitlets.Bytes(b"").tag(sync=True)
    live = traitlets.Bool(False).tag(sync=True)
    backend = traitlets.Unicode("").tag(sync=True)
    step = traitlets.Int(-1).tag(sync=True, state=True)
    mode = traitlets.Unicode("ring").tag(sync=True, state=True)
    speed = traitlets.Int(4).tag(sync=True, state=True)

    def __init__(
        self,
        source: RingTrace | KvPlane,
        step: int = -1,
        mode: Literal["ring", "grid"] = "ring",
        speed: int = 4,
        feed: Feed | None = None,
    ) -> None:
        self.plane = source if isinstance(source, KvPlane) else None
        if isinstance(source, KvPlane):
            self.trace = RingTrace.appends(source.ring, 0)
        elif isinstance(source, RingTrace):
            self.trace = source
        else:
            raise InputError(f"a RingPlayer shows a RingTrace or a KvPlane, not {type(source).__name__}")
        if feed is not None and self.plane is None:
            raise InputError("feed was given with a trace; only a KvPlane is fed")
        if mode not in ("ring", "grid"):
            raise InputError(f"mode is {mode!r}; give 'ring' or 'grid'")
        if speed not in SPEEDS:
            raise InputError(f"speed is {speed!r}; give one of {', '.join(map(str, SPEEDS))}")
        self._feed = feed or self._seeded
        super().__init__(
            start=_state(self.trace.start),
            steps=self.trace.packed().tobytes(),
            live=self.plane is not None,
            backend="" if self.plane is None else self.plane.backend,
            step=whole("step", step, -1, len(self.trace) - 1),
            mode=mode,
            speed=speed,
        )

    def show(self, step: int) -> None:
        """Show another step of the trace; InputError outside it."""
        self.put(step=whole("step", step, -1, len(self.trace) - 1))

    def picture(self) -> Picture:
        """The step that Python set, as a picture; of a plane, its ring as it is now."""
        if self.plane is not None:
            return draw_ring(RingTrace.appends(self.plane.ring, 0))
        return draw_ring(self.trace, self.step)

    def _seeded(self, position: int) -> tuple[F32, F32]:
        assert self.plane is not None
        key, value = seeded(position, 2, self.plane.layout.kv_dim)
        return key, value

    def received(self, content: dict[str, Any]) -> None:
        """Store one row in the live plane, and send what landed."""
        if content.get("op") != "store" or self.plane is None:
            super().received(content)
            return
        plane = self.plane
        position, before = plane.next_position, _state(plane.ring)
        try:
            row = plane.append(position, *self._feed(position))
        except MuserVizError as error:
            self.send({"op": "refused", "text": f"{type(error).__name__}: {error}"})
            return
        key, value = plane.row(row)
        self.send(
            {"op": "stored", "position": position, "row": row, "before": before},
            buffers=[key.tobytes(), value.tobytes()],
        )
