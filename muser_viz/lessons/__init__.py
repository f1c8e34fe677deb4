"""What the lessons ask, a module a lesson: kept apart so that no cell shows its answer."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from muser_viz.asked import Question, Task
from muser_viz.errors import InputError
from muser_viz.views.exercise import Exercise
from muser_viz.views.prediction import Prediction


@cache
def _gathered() -> tuple[dict[str, Question], dict[str, Task]]:
    questions: dict[str, Question] = {}
    tasks: dict[str, Task] = {}
    for found in sorted(iter_modules(__path__), key=lambda module: module.name):
        lesson = import_module(f"{__name__}.{found.name}")
        questions |= lesson.QUESTIONS
        tasks |= lesson.TASKS
    return questions, tasks


def _of(name: str, kind: str, known: dict[str, Question] | dict[str, Task]) -> None:
    if name not in known:
        raise InputError(f"{kind} {name!r} was asked for; there are {', '.join(known)}")


def predict(name: str) -> Prediction:
    """A lesson's question to answer before the cell that shows it; InputError for a name that is none."""
    questions, _ = _gathered()
    _of(name, "prediction", questions)
    return Prediction(questions[name])


def exercise(name: str) -> Exercise:
    """A lesson's exercise: ``exercise(name).check(answer)``; InputError for a name that is none."""
    _, tasks = _gathered()
    _of(name, "exercise", tasks)
    return Exercise(name, tasks[name])
