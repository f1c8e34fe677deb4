from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import muser_viz as mv
from muser_viz import asked
from muser_viz.asked import Question, Task, graded

WHY = "the ring holds <2,048> rows"
CHOICES = ("the rotation", "the origin & len", "nothing")
NUMBER = Question("Which row holds token <2,048>?", 1234, WHY)
CHOICE = Question("What must travel?", CHOICES[1], WHY, CHOICES)


@pytest.fixture(autouse=True)
def _unsolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "_solved", set())


@pytest.mark.parametrize("given", [1234, "1234", "1,234", " 1234 ", "01234", np.int64(1234)])
def test_the_right_number(given: object) -> None:
    assert NUMBER.check(given) == f"Right: {WHY}"


@pytest.mark.parametrize(("given", "named"), [(0, "0"), ("7", "7"), ("2,048", "2048"), (np.uint8(3), "3")])
def test_a_wrong_number(given: object, named: str) -> None:
    assert NUMBER.check(given) == f"Not {named}: {WHY}"


@pytest.mark.parametrize(
    "given",
    ["", " ", "twelve", "1.5", "1.0", "-3", "1e3", "0x10", "1 2", "½", "²", "1" * 5000, ",1,,2", "1,2"],
)
def test_text_that_is_no_whole_number(given: str) -> None:
    with pytest.raises(mv.InputError, match="type a whole number"):
        NUMBER.check(given)


@pytest.mark.parametrize("given", [None, 1.5, 1234.0, True, -1, [1234]])
def test_what_is_no_number(given: object) -> None:
    with pytest.raises(mv.InputError, match=r"^prediction is .*give a whole number from 0"):
        NUMBER.check(given)


def test_choices() -> None:
    assert CHOICE.check(CHOICES[1]) == f"Right: {WHY}"
    assert CHOICE.check("nothing") == f"Not nothing: {WHY}"


@pytest.mark.parametrize("given", [None, "", "noth", "NOTHING", 1])
def test_what_is_no_choice(given: object) -> None:
    with pytest.raises(mv.InputError, match="choose one of the rotation, the origin & len, nothing"):
        CHOICE.check(given)


def test_an_answer_that_is_no_choice() -> None:
    with pytest.raises(mv.InputError, match="'rows' is none of the choices"):
        Question("What must travel?", "rows", WHY, CHOICES)


@pytest.mark.parametrize("answer", ["abc", -1, 1.5])
def test_an_answer_that_nobody_could_give(answer: Any) -> None:
    with pytest.raises(mv.InputError, match="answer"):
        Question("how many?", answer, "why")


def task(needs: tuple[str, ...] = ()) -> Task:
    return Task(
        "Give <7>.", lambda answer: "" if answer == 7 else f"{answer / 1} is not 7", "answer = 7", needs
    )


def test_the_verdict_says_what_is_wrong() -> None:
    assert graded("seven", task(), ...).startswith("no answer yet")
    assert graded("seven", task(), 6) == "not yet: 6.0 is not 7"
    assert graded("seven", task(), 7) == "right"
    assert "your answer raised TypeError" in graded("seven", task(), "7")


def test_what_is_needed_comes_first() -> None:
    late = task(needs=("early",))
    for answer in (7, ...):
        assert graded("late", late, answer).startswith("solve 'early' first")
    graded("early", task(), 7)
    assert graded("late", late, 7) == "right"
    graded("early", task(), 8)
    assert graded("late", late, 7).startswith("solve 'early' first")
