"""What a lesson asks of its reader: a prediction before a cell, an exercise after."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from muser_viz.checks import whole
from muser_viz.errors import InputError


@dataclass(frozen=True)
class Question:
    """A question, its answer (a whole number, or one of ``choices``) and why it is right.

    InputError where ``answer`` is none of the choices, or no whole number.
    """

    question: str
    answer: int | str
    why: str
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.choices:
            whole("answer", self.answer, 0)
        elif self.answer not in self.choices:
            raise InputError(f"answer {self.answer!r} is none of the choices {list(self.choices)}")


@dataclass(frozen=True)
class Task:
    """An exercise: what to do, a check that returns what is wrong ("" where nothing is), a solution as code.

    ``needs`` names the exercises to be solved first.
    """

    task: str
    wrong: Callable[[Any], str]
    solution: str
    needs: tuple[str, ...] = ()


class Prediction(widgets.VBox):  # type: ignore[misc]
    """A Question as a widget, graded with the reason. As text it is the question alone."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self._says = widgets.HTML()
        self._given: Any
        if question.choices:
            self._given = widgets.RadioButtons(
                options=list(question.choices), index=None, layout={"width": "max-content"}
            )
        else:
            self._given = widgets.Text(placeholder="a whole number", layout={"width": "10em"})
        button = widgets.Button(description="Check")
        button.on_click(lambda _: self._grade())
        asked = widgets.HTML(f"<b>Predict:</b> {html.escape(question.question)}")
        super().__init__([asked, widgets.HBox([self._given, button]), self._says])

    def check(self, given: object) -> str:
        """The verdict on an answer, with the reason; InputError where it is no answer at all."""
        question = self.question
        if question.choices:
            if given not in question.choices:
                raise InputError(f"{given!r} was given; choose one of {', '.join(question.choices)}")
        else:
            if isinstance(given, str):
                if not re.fullmatch(r"\s*(\d{1,18}|\d{1,3}(,\d{3}){1,5})\s*", given, re.ASCII):
                    raise InputError(f"{given[:40]!r} was given; type a whole number, such as 12")
                given = int(given.replace(",", ""))
            given = whole("prediction", given, 0)
        return f"{'Right' if given == question.answer else f'Not {given}'}: {question.why}"

    def _grade(self) -> None:
        try:
            said = self.check(self._given.value)
        except Exception as error:
            said = str(error)
        self._says.value = f'<div role="status">{html.escape(said)}</div>'

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        lines = [
            f"Predict: {self.question.question}",
            *(f"  ( ) {choice}" for choice in self.question.choices),
        ]
        bundle["text/plain"] = "\n".join(lines)
        return bundle


_solved: set[str] = set()


class Exercise(widgets.VBox):  # type: ignore[misc]
    """A Task as a widget: the verdict on an answer, the solution one click away.

    ``check(answer)`` is what a lesson's cell ends with; ``...`` stands for no answer
    yet. As text it is the task and the verdict.
    """

    def __init__(self, name: str, task: Task) -> None:
        self.name = name
        self.task = task
        self.verdict = "no answer yet: replace the ... and run the cell again"
        self._said = widgets.HTML()
        self._shown = widgets.HTML()
        button = widgets.Button(description="Show a solution")
        button.on_click(lambda _: self._show())
        asked = widgets.HTML(f"<b>Exercise:</b> {html.escape(task.task)}")
        super().__init__([asked, self._said, button, self._shown])
        self._say()

    def check(self, answer: Any) -> Exercise:
        """Grade an answer and return the exercise, to be shown."""
        missing = [name for name in self.task.needs if name not in _solved]
        if missing:
            self.verdict = f"solve {missing[0]!r} first: its cell comes earlier in this lesson; run it"
        elif answer is not ...:
            try:
                wrong = self.task.wrong(answer)
            except Exception as error:
                wrong = f"your answer raised {type(error).__name__}: {error}"
            self.verdict = f"not yet: {wrong}" if wrong else "right"
            (_solved.discard if wrong else _solved.add)(self.name)
        self._say()
        return self

    def _say(self) -> None:
        self._said.value = f'<div role="status">{html.escape(self.verdict)}</div>'

    def _show(self) -> None:
        self._shown.value = f"<pre>{html.escape(self.task.solution)}</pre>"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        bundle["text/plain"] = f"Exercise: {self.task.task}\n{self.verdict}"
        return bundle
