"""Stepping through a trace in a notebook: a RingTrace goes in, a view comes out (§15.5)."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from muser_viz.checks import whole
from muser_viz.pictures import Picture, draw_ring
from muser_viz.trace import RingTrace


class RingPlayer(widgets.VBox):  # type: ignore[misc]
    """Step, back, play and jump over ``trace``, from ``step`` on (-1: before the first).

    In a page without widgets it is the picture of that step; as text, the
    step's sentence. InputError for a step outside the trace.
    """

    def __init__(self, trace: RingTrace, step: int = -1) -> None:
        self.trace = trace
        last = len(trace) - 1
        step = whole("step", step, -1, last)
        self._image = widgets.Image(format="png", layout=widgets.Layout(max_width="100%"))
        self._says = widgets.HTML()
        self._slider = widgets.IntSlider(
            step, -1, last, description="step", continuous_update=False, layout=widgets.Layout(width="55%")
        )
        self._play = widgets.Play(value=step, min=-1, max=last, interval=250)
        widgets.jslink((self._play, "value"), (self._slider, "value"))
        back = widgets.Button(description="Back", tooltip="one step back")
        forward = widgets.Button(description="Step", tooltip="one step on", button_style="primary")
        back.on_click(lambda _: self._shown(lambda: self.show(max(-1, self.step - 1))))
        forward.on_click(lambda _: self._shown(lambda: self.show(min(last, self.step + 1))))
        self._slider.observe(lambda _: self._shown(self._draw), names="value")
        self._draw()
        controls = widgets.HBox([back, forward, self._play, self._slider])
        super().__init__([self._image, self._says, controls])

    @property
    def step(self) -> int:
        """The step that is shown."""
        return int(self._slider.value)

    def show(self, step: int) -> None:
        """Show another step; InputError outside the trace."""
        self._slider.value = whole("step", step, -1, len(self.trace) - 1)

    def _draw(self) -> None:
        picture = self.picture()
        self._image.value = picture.png
        self._says.value = f'<div role="status">{html.escape(picture.text)}</div>'

    def _shown(self, act: Callable[[], None]) -> None:
        """Run a callback; an error is shown in the widget, where the reader looks."""
        try:
            act()
        except Exception as error:
            said = html.escape(f"{type(error).__name__}: {error}")
            self._says.value = f'<div role="alert"><b>{said}</b></div>'

    def picture(self) -> Picture:
        """The present step as a picture."""
        return draw_ring(self.trace, self.step)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        picture = self.picture()
        bundle["image/png"] = base64.b64encode(picture.png).decode()
        bundle["text/plain"] = picture.text
        return bundle, {"image/png": {"alt": picture.text}}
