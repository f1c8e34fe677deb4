from __future__ import annotations

import json
import re

import pytest
from store_lessons import FOLDER

import muser_viz as mv
from muser_viz import questions


@pytest.mark.parametrize("name", questions._QUESTIONS)
def test_every_question_has_its_answer(name: str) -> None:
    asked = mv.predict(name)
    assert asked.check(asked.answer).startswith("Right: ")
    others = [choice for choice in asked.choices if choice != asked.answer] or ["77"]
    for wrong in others:
        assert asked.check(wrong).startswith(f"Not {wrong}: ")


def test_the_lessons_ask_every_question_and_no_other() -> None:
    text = "".join(
        "".join(cell["source"])
        for path in FOLDER.glob("*.ipynb")
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    )
    assert set(re.findall(r'mv\.predict\("([^"]+)"\)', text)) == set(questions._QUESTIONS)


def test_a_name_that_is_none() -> None:
    with pytest.raises(mv.InputError, match="'wrap' was asked for; there are first wrap"):
        mv.predict("wrap")
