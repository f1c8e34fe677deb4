"""A question to answer before the cell that shows it, graded in the browser alone."""

from __future__ import annotations

import json
from html import escape
from typing import Any

import traitlets

from muser_viz.asked import Question
from muser_viz.views.view import Form, front


class Prediction(Form):
    """A Question as a form, graded with the reason. As text it is the question alone.

    In a page without widgets its answer lies folded under it. ``given`` is what the
    reader chose or typed, ``graded`` what of that was checked last.
    """

    _esm, _css = front("prediction")

    asked = traitlets.Unicode().tag(sync=True)
    choices = traitlets.List(traitlets.Unicode()).tag(sync=True)
    answer = traitlets.Bytes().tag(sync=True)
    """[answer, reason] as JSON in UTF-8: bytes, so that no page says them before the reader has answered."""
    given = traitlets.Unicode("").tag(sync=True, state=True)
    graded = traitlets.Unicode("").tag(sync=True, state=True)

    def __init__(self, question: Question) -> None:
        self.question = question
        super().__init__(
            asked=question.question,
            choices=list(question.choices),
            answer=json.dumps([str(question.answer), question.why]).encode(),
        )

    def check(self, given: object) -> str:
        """The verdict on an answer, with the reason; InputError where it is no answer at all."""
        return self.question.check(given)

    def still(self) -> tuple[dict[str, str], dict[str, Any]]:
        """The question; in HTML with its answer folded."""
        question = self.question
        answer = f"{question.answer:,}" if isinstance(question.answer, int) else question.answer
        listed = "".join(f"<li>{escape(choice)}</li>" for choice in question.choices)
        page = (
            f"<p><b>Predict:</b> {escape(question.question)}</p>"
            + (f"<ul>{listed}</ul>" if listed else "")
            + f"<details><summary>The answer</summary><p>{escape(f'{answer}: {question.why}')}</p></details>"
        )
        lines = [f"Predict: {question.question}", *(f"  ( ) {choice}" for choice in question.choices)]
        return {"text/html": page, "text/plain": "\n".join(lines)}, {}
