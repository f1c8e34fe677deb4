from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ipywidgets as widgets
import numpy as np
import pytest

import muser_viz as mv
from muser_viz.asked import Exercise, Prediction, Question, Task


def asked(question: str, answer: Any, why: str, choices: Any = ()) -> Prediction:
    return Prediction(Question(question, answer, why, tuple(choices)))


VIEW = "application/vnd.jupyter.widget-view+json"
WHY = "the ring holds <2,048> rows"
CHOICES = ("the rotation", "the origin & len", "nothing")


def parts(widget: Any, kind: type) -> Iterator[Any]:
    if isinstance(widget, kind):
        yield widget
    for child in getattr(widget, "children", ()):
        yield from parts(child, kind)


def graded(prediction: mv.Prediction, given: str | None) -> str:
    """What the widget says once an answer is given and the button clicked."""
    (field,) = (*parts(prediction, widgets.Text), *parts(prediction, widgets.RadioButtons))
    (button,) = parts(prediction, widgets.Button)
    field.value = given
    button.click()
    *_, verdict = parts(prediction, widgets.HTML)
    return str(verdict.value)


@pytest.fixture
def number() -> mv.Prediction:
    return asked("Which row holds token <2,048>?", 1234, WHY)


@pytest.fixture
def choice() -> mv.Prediction:
    return asked("What must travel?", CHOICES[1], WHY, CHOICES)


@pytest.mark.parametrize("given", [1234, "1234", "1,234", " 1234 ", "01234", np.int64(1234)])
def test_the_right_number(number: mv.Prediction, given: object) -> None:
    assert number.check(given) == f"Right: {WHY}"


@pytest.mark.parametrize(("given", "named"), [(0, "0"), ("7", "7"), ("2,048", "2048"), (np.uint8(3), "3")])
def test_a_wrong_number(number: mv.Prediction, given: object, named: str) -> None:
    assert number.check(given) == f"Not {named}: {WHY}"


@pytest.mark.parametrize("given", ["", " ", "twelve", "1.5", "-3", "1e3", "0x10", "1 2", "½", "²"])
def test_what_is_no_number_as_text(number: mv.Prediction, given: str) -> None:
    with pytest.raises(mv.InputError, match="type a whole number"):
        number.check(given)


@pytest.mark.parametrize("given", [None, 1.5, 1234.0, True, -1, [1234]])
def test_what_is_no_number(number: mv.Prediction, given: object) -> None:
    with pytest.raises(mv.InputError, match=r"^prediction is .*give a whole number from 0"):
        number.check(given)


def test_choices(choice: mv.Prediction) -> None:
    assert choice.check(CHOICES[1]) == f"Right: {WHY}"
    assert choice.check("nothing") == f"Not nothing: {WHY}"


@pytest.mark.parametrize("given", [None, "", "noth", "NOTHING", 1])
def test_what_is_no_choice(choice: mv.Prediction, given: object) -> None:
    with pytest.raises(mv.InputError, match="choose one of the rotation, the origin & len, nothing"):
        choice.check(given)


def test_an_answer_that_is_no_choice() -> None:
    with pytest.raises(mv.InputError, match="'rows' is none of the choices"):
        asked("What must travel?", "rows", WHY, CHOICES)


def test_no_choice_is_made_for_the_reader(choice: mv.Prediction) -> None:
    (buttons,) = parts(choice, widgets.RadioButtons)
    assert tuple(buttons.options) == CHOICES
    assert buttons.value is None


def test_a_number_is_graded_by_the_button(number: mv.Prediction) -> None:
    assert "Right: the ring holds &lt;2,048&gt; rows" in graded(number, "1,234")
    assert "Not 12: the ring holds &lt;2,048&gt; rows" in graded(number, "12")
    assert "Right: " in graded(number, "1234")


def test_a_choice_is_graded_by_the_button(choice: mv.Prediction) -> None:
    assert "Right: " in graded(choice, CHOICES[1])
    assert "Not nothing: " in graded(choice, "nothing")


@pytest.mark.parametrize("given", ["", "<i>1234</i>"])
def test_a_malformed_number_is_answered_in_the_widget(number: mv.Prediction, given: str) -> None:
    verdict = graded(number, given)
    assert "type a whole number" in verdict
    assert "<i>" not in verdict
    assert "rows" not in verdict


def test_no_choice_made_is_answered_in_the_widget(choice: mv.Prediction) -> None:
    verdict = graded(choice, None)
    assert "choose one of " in verdict
    assert "rows" not in verdict


def test_the_question_is_escaped(number: mv.Prediction) -> None:
    asked, *_ = parts(number, widgets.HTML)
    assert "token &lt;2,048&gt;?" in asked.value


def test_as_text_it_is_the_question_alone(number: mv.Prediction, choice: mv.Prediction) -> None:
    for prediction in (number, choice):
        graded(prediction, CHOICES[1] if prediction is choice else "1234")
        assert prediction._repr_mimebundle_()[VIEW]["model_id"] == prediction.model_id
    assert number._repr_mimebundle_()["text/plain"] == "Predict: Which row holds token <2,048>?"
    assert choice._repr_mimebundle_()["text/plain"].splitlines() == [
        "Predict: What must travel?",
        "  ( ) the rotation",
        "  ( ) the origin & len",
        "  ( ) nothing",
    ]


def test_before_grading_the_page_holds_no_answer(number: mv.Prediction) -> None:
    state = " ".join(str(widget.get_state()) for widget in parts(number, widgets.Widget))
    assert "1234" not in state
    assert "the ring holds" not in state


@pytest.mark.parametrize("answer", ["abc", -1, 1.5])
def test_an_answer_that_nobody_could_give(answer: Any) -> None:
    with pytest.raises(mv.InputError, match="answer"):
        asked("how many?", answer, "why")


@pytest.mark.parametrize("given", ["1" * 5000, ",1,,2", "1,2", "-1", "1.0", ""])
def test_text_that_is_no_whole_number(given: str) -> None:
    with pytest.raises(mv.InputError, match="type a whole number"):
        asked("how many?", 12, "why").check(given)


def task(needs: tuple[str, ...] = ()) -> Task:
    return Task(
        "Give <7>.", lambda answer: "" if answer == 7 else f"{answer / 1} is not 7", "answer = 7", needs
    )


def test_an_exercise_without_an_answer_says_what_to_do() -> None:
    fresh = Exercise("seven", task()).check(...)
    assert fresh.verdict.startswith("no answer yet")
    text = fresh._repr_mimebundle_()["text/plain"]
    assert text == f"Exercise: Give <7>.\n{fresh.verdict}"
    assert "&lt;7&gt;" in fresh.children[0].value


def test_an_exercise_says_what_is_wrong() -> None:
    assert Exercise("seven", task()).check(6).verdict == "not yet: 6.0 is not 7"
    assert Exercise("seven", task()).check(7).verdict == "right"
    assert "your answer raised TypeError" in Exercise("seven", task()).check("7").verdict


def test_an_exercise_done_too_early_says_what_to_run_first() -> None:
    late = Exercise("late", task(needs=("early",)))
    assert late.check(7).verdict.startswith("solve 'early' first")
    Exercise("early", task()).check(7)
    assert late.check(7).verdict == "right"
    Exercise("early", task()).check(8)
    assert late.check(7).verdict.startswith("solve 'early' first")


def test_the_solution_is_one_click_away() -> None:
    shown = Exercise("seven", task())
    assert "answer = 7" not in shown.children[3].value
    shown.children[2].click()
    assert "answer = 7" in shown.children[3].value
