"""Stepping through a trace in a notebook: a RingTrace goes in, a view comes out (§15.5)."""

from __future__ import annotations

import ipywidgets as widgets

from muser_viz.checks import whole
from muser_viz.pictured import PicturedView
from muser_viz.pictures import Picture, draw_ring
from muser_viz.trace import RingTrace


class RingPlayer(PicturedView):
    """Step, back, play and jump over ``trace``, from ``step`` on (-1: before the first).

    In a page without widgets it is the picture of that step; as text, the
    step's sentence. InputError for a step outside the trace.
    """

    def __init__(self, trace: RingTrace, step: int = -1) -> None:
        self.trace = trace
        last = len(trace) - 1
        step = whole("step", step, -1, last)
        super().__init__()
        self._slider = widgets.IntSlider(
            step, -1, last, description="step", continuous_update=False, layout=widgets.Layout(width="55%")
        )
        self._play = widgets.Play(value=step, min=-1, max=last, interval=250)
        widgets.jslink((self._play, "value"), (self._slider, "value"))
        back = widgets.Button(description="Back", tooltip="one step back")
        forward = widgets.Button(description="Step", tooltip="one step on", button_style="primary")
        back.on_click(lambda _: self.shown(lambda: self.show(max(-1, self.step - 1))))
        forward.on_click(lambda _: self.shown(lambda: self.show(min(last, self.step + 1))))
        self._slider.observe(self.redraw, names="value")
        self.assemble(widgets.HBox([back, forward, self._play, self._slider]))

    @property
    def step(self) -> int:
        """The step that is shown."""
        return int(self._slider.value)

    def show(self, step: int) -> None:
        """Show another step; InputError outside the trace."""
        self._slider.value = whole("step", step, -1, len(self.trace) - 1)

    def picture(self) -> Picture:
        """The present step as a picture."""
        return draw_ring(self.trace, self.step)
