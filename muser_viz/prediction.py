"""A question that the reader answers before the cell that shows it."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from muser_viz.checks import whole
from muser_viz.errors import InputError


class Prediction(widgets.VBox):  # type: ignore[misc]
    """A number, or one of ``choices``, to be predicted; graded with the reason.

    ``answer``: the whole number, or the right choice. ``why`` is shown with the
    verdict. As text it is the question alone. InputError where ``answer`` is
    none of the choices, or no whole number.
    """

    def __init__(self, question: str, answer: int | str, why: str, choices: Sequence[str] = ()) -> None:
        if choices and answer not in choices:
            raise InputError(f"answer {answer!r} is none of the choices {list(choices)}: name one of them")
        if not choices:
            answer = whole("answer", answer, 0)
        self.question, self.answer, self.why, self.choices = question, answer, why, tuple(choices)
        self._says = widgets.HTML()
        self._given: Any
        if choices:
            self._given = widgets.RadioButtons(
                options=list(choices), index=None, layout={"width": "max-content"}
            )
        else:
            self._given = widgets.Text(placeholder="a whole number", layout={"width": "10em"})
        button = widgets.Button(description="Check")
        button.on_click(lambda _: self._grade())
        asked = widgets.HTML(f"<b>Predict:</b> {html.escape(question)}")
        super().__init__([asked, widgets.HBox([self._given, button]), self._says])

    def check(self, given: object) -> str:
        """The verdict on an answer, with the reason; InputError where it is no answer at all."""
        if self.choices:
            if given not in self.choices:
                raise InputError(f"{given!r} was given; choose one of {', '.join(self.choices)}")
        else:
            if isinstance(given, str):
                if not re.fullmatch(r"\s*(\d{1,18}|\d{1,3}(,\d{3}){1,5})\s*", given, re.ASCII):
                    raise InputError(f"{given[:40]!r} was given; type a whole number, such as 12")
                given = int(given.replace(",", ""))
            given = whole("prediction", given, 0)
        return f"{'Right' if given == self.answer else f'Not {given}'}: {self.why}"

    def _grade(self) -> None:
        try:
            said = self.check(self._given.value)
        except Exception as error:
            said = str(error)
        self._says.value = f'<div role="status">{html.escape(said)}</div>'

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        lines = [f"Predict: {self.question}", *(f"  ( ) {choice}" for choice in self.choices)]
        bundle["text/plain"] = "\n".join(lines)
        return bundle
