from __future__ import annotations

import json
import re

import pytest
from store_lessons import FOLDER

import muser_viz as mv
from muser_viz.lessons import _gathered

QUESTIONS, TASKS = _gathered()


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_has_its_answer(name: str) -> None:
    question = QUESTIONS[name]
    asked = mv.predict(name)
    assert asked.check(question.answer).startswith("Right: ")
    others = [choice for choice in question.choices if choice != question.answer] or ["770077"]
    for wrong in others:
        assert asked.check(wrong).startswith(f"Not {wrong}: ")


@pytest.mark.parametrize("name", TASKS)
def test_every_solution_is_right_and_nonsense_is_told(name: str) -> None:
    task = TASKS[name]
    names: dict[str, object] = {}
    exec(task.solution, names)
    defined = [value for key, value in names.items() if not key.startswith("__") and key not in ("mv", "np")]
    assert task.wrong(names.get("answer", defined[-1])) == ""
    assert task.wrong(987_654_321)


def test_the_lessons_ask_every_question_and_no_other() -> None:
    text = "".join(
        "".join(cell["source"])
        for path in FOLDER.glob("*.ipynb")
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    )
    assert set(re.findall(r'mv\.predict\("([^"]+)"\)', text)) == set(QUESTIONS)
    assert set(re.findall(r'mv\.exercise\("([^"]+)"\)', text)) == set(TASKS)


def test_a_name_that_is_none() -> None:
    with pytest.raises(mv.InputError, match="'wrap' was asked for; there are .*first wrap"):
        mv.predict("wrap")
    with pytest.raises(mv.InputError, match="'wrap' was asked for; there are .*row of a token"):
        mv.exercise("wrap")
