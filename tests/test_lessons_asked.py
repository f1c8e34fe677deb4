from __future__ import annotations

import json
import re

import pytest
from store_lessons import FOLDER

import muser_viz as mv
from muser_viz import asked
from muser_viz.lessons import _gathered

QUESTIONS, TASKS = _gathered()


def solved(name: str) -> object:
    """What a task's solution gives, run after those that it needs."""
    names: dict[str, object] = {}
    for each in (*TASKS[name].needs, name):
        names.pop("answer", None)
        exec(TASKS[each].solution, names)
    defined = [value for key, value in names.items() if not key.startswith("__") and key not in ("mv", "np")]
    return names.get("answer", defined[-1])


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_has_its_answer(name: str) -> None:
    question = QUESTIONS[name]
    prediction = mv.predict(name)
    assert prediction.check(question.answer).startswith("Right: ")
    others = [choice for choice in question.choices if choice != question.answer] or ["770077"]
    for wrong in others:
        assert prediction.check(wrong).startswith(f"Not {wrong}: ")


@pytest.mark.parametrize("name", TASKS)
def test_every_solution_is_right_and_nonsense_is_told(name: str) -> None:
    task = TASKS[name]
    assert task.wrong(solved(name)) == ""
    assert task.wrong(987_654_321)


def test_the_lessons_ask_every_question_and_no_other() -> None:
    text = "".join(
        "".join(cell["source"])
        for path in FOLDER.glob("*.ipynb")
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    )
    assert set(re.findall(r'mv\.predict\("([^"]+)"\)', text)) == set(QUESTIONS)
    assert set(re.findall(r'mv\.exercise\("([^"]+)"\)', text)) == set(TASKS)


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.needs])
def test_a_reader_is_told_what_to_solve_first(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "_solved", set())
    told = f"solve {TASKS[name].needs[0]!r} first: "
    for early in (..., solved(name)):
        assert mv.exercise(name).check(early).verdict.startswith(told)
    for needed in TASKS[name].needs:
        mv.exercise(needed).check(solved(needed))
    assert mv.exercise(name).check(...).verdict.startswith("no answer yet")
    assert mv.exercise(name).check(solved(name)).verdict == "right"


def test_what_is_needed_comes_earlier_in_the_same_lesson() -> None:
    assert any(task.needs for task in TASKS.values())
    for path in FOLDER.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found = re.findall(r'mv\.exercise\("([^"]+)"\)', "".join("".join(cell["source"]) for cell in cells))
        for place, name in enumerate(found):
            assert set(TASKS[name].needs) <= set(found[:place]), name


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda *_: 7, "give a list of rows"),
        (lambda position, count, *_: list(range(position, position + count)), "rows [5, 6, 7, 0, 1, 2]"),
        (lambda position, count, *_: [n % 8 for n in range(position, position + count)], "window"),
        (
            lambda position, count, logical, *_: [
                n % 8 for n in range(max(position, logical), position + count)
            ],
            "[2,",
        ),
    ],
)
def test_rows_of_a_chunk_that_are_wrong(answer: object, told: str) -> None:
    assert told in TASKS["rows of a chunk"].wrong(answer)


def test_a_name_that_is_none() -> None:
    with pytest.raises(mv.InputError, match="'wrap' was asked for; there are .*first wrap"):
        mv.predict("wrap")
    with pytest.raises(mv.InputError, match="'wrap' was asked for; there are .*row of a token"):
        mv.exercise("wrap")
