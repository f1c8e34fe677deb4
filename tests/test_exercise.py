from __future__ import annotations

import pytest

from muser_viz import asked
from muser_viz.asked import Task
from muser_viz.views.exercise import Exercise

TASK = Task("Give <7>.", lambda answer: "" if answer == 7 else f"{answer} is <not> 7", "answer = 7 < 8")


@pytest.fixture(autouse=True)
def _unsolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "_solved", set())


def test_check_grades_and_returns_the_exercise() -> None:
    exercise = Exercise("seven", TASK)
    assert exercise.verdict.startswith("no answer yet")
    assert exercise.check(6) is exercise
    assert exercise.verdict == "not yet: 6 is <not> 7"
    assert exercise.check(7).verdict == "right"


def test_as_text_it_is_the_task_and_the_verdict() -> None:
    data, _ = Exercise("seven", TASK).check(6)._repr_mimebundle_()
    assert data["text/plain"] == "Exercise: Give <7>.\nnot yet: 6 is <not> 7"
    assert "application/vnd.jupyter.widget-view+json" in data


def test_in_a_page_without_widgets_the_solution_is_folded() -> None:
    shown, folded = Exercise("seven", TASK).check(6).still()[0]["text/html"].split("<details>")
    assert "Give &lt;7&gt;." in shown
    assert "not yet: 6 is &lt;not&gt; 7" in shown
    assert "answer" not in shown
    assert "<pre>answer = 7 &lt; 8</pre>" in folded


def test_the_solution_is_not_shown_at_first() -> None:
    assert Exercise("seven", TASK).began == {"unfolded": False}
