"""What a lesson asks of its reader, and how an answer is graded; no widget is needed for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Task:
    """An exercise: what to do, a check that returns what is wrong ("" where nothing is), a solution as code.

    ``needs`` names the exercises to be solved first.
    """

    task: str
    wrong: Callable[[Any], str]
    solution: str
    needs: tuple[str, ...] = ()


UNANSWERED = "no answer yet: replace the ... and run the cell again"
_solved: set[str] = set()


def graded(name: str, task: Task, answer: Any) -> str:
    """The verdict on an answer to the exercise ``name``; ``...`` stands for no answer yet."""
    missing = [needed for needed in task.needs if needed not in _solved]
    if missing:
        return f"solve {missing[0]!r} first: its cell comes earlier in this lesson; run it"
    if answer is ...:
        return UNANSWERED
    try:
        wrong = task.wrong(answer)
    except Exception as error:
        wrong = f"your answer raised {type(error).__name__}: {error}"
    (_solved.discard if wrong else _solved.add)(name)
    return f"not yet: {wrong}" if wrong else "right"
