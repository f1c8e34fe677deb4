"""Predictions and exercises in a real JupyterLab: graded without the kernel."""

from __future__ import annotations

import re

import pytest
from page_checks import check_width, full_screen, notebook, says, view
from playwright.sync_api import Page, expect

import muser_viz as mv

NUMBER = 'import muser_viz as mv\nnumber = mv.predict("first wrap")\nnumber'
CHOICE = 'mv.predict("an early token")'
WRONG = 'mv.exercise("live sources").check(("<b>3</b>", "<b>4</b>"))'
OPEN = 'mv.exercise("row of a token").check(...)'

opened = notebook("forms.ipynb", NUMBER, CHOICE, WRONG, OPEN, "number", views=5)


@pytest.mark.parametrize("given", ["0", " 000 ", "2,048", "7"])
def test_a_number_is_graded_as_in_python(page: Page, given: str) -> None:
    shown = view(page, 0)
    shown.get_by_role("textbox").fill(given)
    shown.get_by_role("button", name="Check").click()
    assert says(shown) == mv.predict("first wrap").check(given)


@pytest.mark.parametrize("given", ["twelve", "-1", "1,2", "1.0", "<i>1</i>", "½", "1" * 19])
def test_what_is_no_number_is_told_and_not_graded(page: Page, given: str) -> None:
    shown = view(page, 0)
    shown.get_by_role("textbox").fill(given)
    shown.get_by_role("textbox").press("Enter")
    expect(shown.get_by_role("alert")).to_have_text(f"'{given}' was given; type a whole number, such as 12")
    assert says(shown) == ""


def test_enter_grades_and_r_starts_again(page: Page) -> None:
    shown = view(page, 0)
    shown.get_by_role("button", name="Check").click()
    expect(shown.get_by_role("alert")).to_contain_text("nothing was given")
    shown.get_by_role("textbox").fill("0")
    shown.get_by_role("textbox").press("Enter")
    assert says(shown).startswith("Right: ")
    assert shown.get_attribute("data-verdict") == "right"
    expect(shown.get_by_role("alert")).to_be_hidden()
    shown.get_by_role("textbox").press_sequentially("7")
    assert (says(shown), shown.get_by_role("textbox").input_value()) == ("", "07")
    shown.get_by_role("textbox").press("Enter")
    assert says(shown).startswith("Not 7: ")
    assert says(view(page, 4)) == says(shown)  # another display of the same form
    shown.focus()
    page.keyboard.press("r")
    assert (says(shown), shown.get_by_role("textbox").input_value()) == ("", "")


def test_a_choice_is_graded_by_click_and_by_key(page: Page) -> None:
    shown, prediction = view(page, 1), mv.predict("an early token")
    group = shown.get_by_role("radiogroup")
    expect(group).to_have_accessible_name(prediction.question.question)
    assert shown.get_by_role("radio", checked=True).count() == 0
    shown.get_by_role("button", name="Check").click()
    expect(shown.get_by_role("alert")).to_contain_text("nothing was chosen; choose one of row 5 in both")
    for choice in prediction.question.choices:
        shown.get_by_role("radio", name=choice, exact=True).check()
        assert says(shown) == ""
        shown.get_by_role("button", name="Check").click()
        assert says(shown) == prediction.check(choice)
    shown.get_by_role("radio").first.check()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert says(shown) == prediction.check(prediction.question.choices[1])
    expect(shown.get_by_role("status")).to_have_text(says(shown))


def test_a_key_that_a_view_does_not_know_is_not_jupyterlab_s(page: Page) -> None:
    for focused in (
        view(page, 1).get_by_role("radio").first,
        view(page, 1).get_by_role("button", name="Check"),
    ):
        focused.focus()
        for key in ("x", "d", "d", "a"):
            page.keyboard.press(key)
        expect(focused).to_be_focused()
    assert page.evaluate("jupyterapp.shell.currentWidget.content.widgets.length") == 5


def test_an_exercise_shows_its_verdict_and_folds_its_solution(page: Page) -> None:
    wrong, fresh = view(page, 2), view(page, 3)
    assert "does not hold <b>4</b> of its rows" in says(wrong)
    assert says(fresh).startswith("no answer yet")
    expect(wrong.locator("pre")).to_be_hidden()
    wrong.get_by_text("Show a solution").click()
    expect(wrong.locator("pre")).to_contain_text("answer = (952, 2048)")
    wrong.focus()
    page.keyboard.press("r")
    expect(wrong.locator("pre")).to_be_hidden()


def test_a_clicker_goes_on_in_full_screen(page: Page) -> None:
    shown = view(page, 1)
    shown.get_by_role("radio").first.check()
    page.keyboard.press("PageDown")
    expect(shown).not_to_have_class(re.compile("mv-full"))
    with full_screen(page, shown):
        shown.get_by_role("radio").first.focus()
        page.keyboard.press("PageDown")
        expect(view(page, 2)).to_have_class(re.compile("mv-full"))


def test_a_narrow_screen_shows_all(page: Page) -> None:
    check_width(page)
