from __future__ import annotations

import pytest

import muser_viz as mv
from muser_viz.asked import Question
from muser_viz.views.prediction import Prediction

VIEW = "application/vnd.jupyter.widget-view+json"
NUMBER = Question("Which row holds token <2,048>?", 1234, "it holds <2,048> rows")
CHOICE = Question("What must travel?", "origin & len", "because", ("the rotation", "origin & len"))


def test_it_grades_as_its_question() -> None:
    prediction = Prediction(NUMBER)
    assert prediction.question is NUMBER
    assert prediction.check("1,234") == "Right: it holds <2,048> rows"
    with pytest.raises(mv.InputError, match="type a whole number"):
        prediction.check("twelve")


def test_nothing_is_given_for_the_reader_and_r_brings_that_back() -> None:
    prediction = Prediction(CHOICE)
    assert prediction.began == {"given": "", "graded": ""}
    assert prediction.choices == list(CHOICE.choices)


def test_before_grading_the_state_does_not_say_the_answer() -> None:
    state = Prediction(NUMBER).get_state()
    assert "1234" not in str({key: value for key, value in state.items() if key != "answer"})
    assert isinstance(state["answer"], bytes)  # a page holds it as base64
    assert b'["1234", "it holds <2,048> rows"]' in state["answer"]


def test_as_text_it_is_the_question_alone() -> None:
    data, _ = Prediction(CHOICE)._repr_mimebundle_()
    assert data["text/plain"].splitlines() == [
        "Predict: What must travel?",
        "  ( ) the rotation",
        "  ( ) origin & len",
    ]
    assert VIEW in data
    assert Prediction(NUMBER).still()[0]["text/plain"] == "Predict: Which row holds token <2,048>?"


def test_in_a_page_without_widgets_the_answer_is_folded() -> None:
    page = Prediction(NUMBER).still()[0]["text/html"]
    shown, folded = page.split("<details>")
    assert "token &lt;2,048&gt;?" in shown
    assert "1,234" not in shown
    assert "1,234: it holds &lt;2,048&gt; rows" in folded
    assert "<li>origin &amp; len</li>" in Prediction(CHOICE).still()[0]["text/html"]
