"""What every widget is: an ESM module over arrays, with a picture and a text that say the same."""

from __future__ import annotations

import base64
from importlib.resources import files
from typing import Any, Self

import anywidget
import traitlets

from muser_viz.errors import InputError
from muser_viz.pictures import Picture
from muser_viz.views import displays


def front(name: str) -> tuple[str, str]:
    """The browser's part of a view: the shared module and style, and the view's own after them."""
    here = files("muser_viz.views")
    imported = 'import { stage, make, number, unpack, viridis } from "./stage.js";\n'
    shared, own = ((here / f"{part}.js").read_text(encoding="utf-8") for part in ("stage", name))
    if own.count(imported) != 1:
        raise ValueError(f"{name}.js must import the shared module once: {imported.strip()}")
    style = here / f"{name}.css"
    styles = [(here / "stage.css").read_text(encoding="utf-8")]
    styles += [style.read_text(encoding="utf-8")] if style.is_file() else []
    return shared.replace("export ", "") + own.replace(imported, ""), "\n".join(styles)


class Form(anywidget.AnyWidget):
    """A widget that the browser plays without the kernel; what pages without widgets show is its still.

    A subclass sets ``_esm`` and ``_css`` by ``front``, tags what the reader can
    change in the browser ``state=True``, and gives ``still``. What the reader
    changes stays in the browser; a value set here is sent to it. An error in a
    callback is shown in the widget.
    """

    began = traitlets.Dict().tag(sync=True)
    """The state that the key R brings back."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.began = {name: getattr(self, name) for name in self.trait_names(state=True)}
        self.on_msg(self._received)

    def still(self) -> tuple[dict[str, str], dict[str, Any]]:
        """Data and metadata by MIME type, for a page without widgets; text/plain is among them."""
        raise NotImplementedError

    def put(self, **values: Any) -> None:
        """Set state and send it, also where the browser has gone on from the same value."""
        for name, value in values.items():
            setattr(self, name, value)
        self.send_state(list(values))

    def received(self, content: dict[str, Any]) -> None:
        """A message from the browser; views without a live mode get none."""
        raise NotImplementedError(f"{type(self).__name__} takes no messages, got {content}")

    def _received(self, _: Any, content: dict[str, Any], __: Any) -> None:
        """``received``, with an error shown in the widget."""
        try:
            self.received(content)
        except Exception as error:
            self.send({"op": "error", "text": f"{type(error).__name__}: {error}"})

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        displays.displayed(self)
        bundle = super()._repr_mimebundle_(**kwargs)
        data = dict(bundle[0] if isinstance(bundle, tuple) else bundle or {})
        still, metadata = self.still()
        return data | still, metadata


class View(Form):
    """A form with a picture: as widget, PNG and text. A subclass gives ``picture``."""

    stops = traitlets.List(traitlets.Dict()).tag(sync=True)
    stop = traitlets.Int(-1).tag(sync=True, state=True)
    """The stop of the tour that was gone to last, from 0 on; -1: none."""

    def tour(self, *stops: dict[str, Any]) -> Self:
        """Let Page Down and Page Up, a clicker's two keys, go from stop to stop; this view, to be shown.

        A stop holds state by name, such as ``{"step": 8}`` of a RingPlayer; what
        it leaves out stays. InputError for a name that is no state of this view,
        or a value of another type.
        """
        names = sorted({*self.trait_names(state=True)} - {"stop"})
        for stop in stops:
            for name, value in stop.items():
                if name not in names:
                    raise InputError(f"{name!r} is no state of a {type(self).__name__}: {', '.join(names)}")
                if type(value) is not type(getattr(self, name)):
                    raise InputError(f"{name} is {value!r}; give {type(getattr(self, name)).__name__}")
        self.stops = list(stops)
        return self

    def picture(self) -> Picture:
        """The state that Python set, as a picture."""
        raise NotImplementedError

    def still(self) -> tuple[dict[str, str], dict[str, Any]]:
        """The picture and its text."""
        picture = self.picture()
        data = {"image/png": base64.b64encode(picture.png).decode(), "text/plain": picture.text}
        return data, {"image/png": {"alt": picture.text}}
