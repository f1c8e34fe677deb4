"""An exercise as a form: the verdict on an answer, a solution one click away."""

from __future__ import annotations

from html import escape
from typing import Any

import traitlets

from muser_viz.asked import UNANSWERED, Task, graded
from muser_viz.views.view import Form, front


class Exercise(Form):
    """A Task as a form: the verdict on an answer, the solution one click away.

    ``check(answer)`` is what a lesson's cell ends with; ``...`` stands for no answer
    yet. As text it is the task and the verdict.
    """

    _esm, _css = front("exercise")

    asked = traitlets.Unicode().tag(sync=True)
    verdict = traitlets.Unicode(UNANSWERED).tag(sync=True)
    solution = traitlets.Unicode().tag(sync=True)
    unfolded = traitlets.Bool(False).tag(sync=True, state=True)

    def __init__(self, name: str, task: Task) -> None:
        self.name = name
        self.task = task
        super().__init__(asked=task.task, solution=task.solution)

    def check(self, answer: Any) -> Exercise:
        """Grade an answer and return the exercise, to be shown."""
        self.verdict = graded(self.name, self.task, answer)
        return self

    def still(self) -> tuple[dict[str, str], dict[str, Any]]:
        """The task and the verdict; in HTML with a solution folded."""
        page = (
            f"<p><b>Exercise:</b> {escape(self.task.task)}</p><p>{escape(self.verdict)}</p>"
            f"<details><summary>Show a solution</summary><pre>{escape(self.solution)}</pre></details>"
        )
        return {"text/html": page, "text/plain": f"Exercise: {self.task.task}\n{self.verdict}"}, {}
