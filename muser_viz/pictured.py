"""What every stepped view does: show its present picture, and any error where the reader looks."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from typing import Any, ClassVar

import ipywidgets as widgets

from muser_viz.pictures import Picture


class PicturedView(widgets.VBox):  # type: ignore[misc]
    """A widget over ``picture()``: as widget, PNG and text.

    A subclass gives ``picture`` and hands its controls to ``assemble``, which
    draws for the first time; ``redraw`` is the callback of its controls.
    """

    STATUS: ClassVar[str] = '<div role="status">{}</div>'
    """The text under the picture, as HTML."""

    def __init__(self) -> None:
        super().__init__()
        self._image = widgets.Image(format="png", layout=widgets.Layout(max_width="100%"))
        self._says = widgets.HTML()

    def picture(self) -> Picture:
        """The present state as a picture."""
        raise NotImplementedError

    def assemble(self, *controls: Any) -> None:
        """Draw, and put picture, text and controls one under the other."""
        self._draw()
        self.children = [self._image, self._says, *controls]

    def redraw(self, *_: Any) -> None:
        """Draw again after a control has moved."""
        self.shown(self._draw)

    def _draw(self) -> None:
        picture = self.picture()
        self._image.value = picture.png
        self._says.value = self.STATUS.format(html.escape(picture.text))

    def shown(self, act: Callable[[], None]) -> None:
        """Run a callback; an error is shown in the widget."""
        try:
            act()
        except Exception as error:
            said = html.escape(f"{type(error).__name__}: {error}")
            self._says.value = f'<div role="alert"><b>{said}</b></div>'

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        picture = self.picture()
        bundle["image/png"] = base64.b64encode(picture.png).decode()
        bundle["text/plain"] = picture.text
        return bundle, {"image/png": {"alt": picture.text}}
