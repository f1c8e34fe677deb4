from __future__ import annotations

import re

import pytest
from page_checks import (
    check_keys,
    check_theme,
    check_there,
    check_width,
    full_screen,
    notebook,
    number,
    resized,
    says,
    view,
)
from playwright.sync_api import Locator, Page, expect

from muser_viz.layout_picture import layouts_text

START = "import muser_viz as mv\n"
SIZES = ((6, 2, 4), (8, 3, 4), (3, 1, 5))
PICKED = ((3, 6), (7, 11), (0, 0))
CELLS = [START + f"view = mv.LayoutView{(*PICKED[0], *SIZES[0])}\nview"]
CELLS += [f"mv.LayoutView{(*picked, *sizes)}" for picked, sizes in zip(PICKED[1:], SIZES[1:], strict=True)]

opened = notebook("layouts.ipynb", *CELLS, "view", views=4)


def picked(shown: Locator) -> tuple[int, int]:
    return number(shown, "row"), number(shown, "element")


def check_says(shown: Locator, sizes: tuple[int, int, int]) -> None:
    """Formulas, spans and marked cells are those of the package's text."""
    row, element = picked(shown)
    title, _, token, token_spans, _, head, head_spans = layouts_text(row, element, *sizes).splitlines()
    said = says(shown)
    assert said.startswith(
        f"row {row}, element {element}: KV head {element // sizes[2]}, dim {element % sizes[2]} (E); "
    )
    assert said.split("; ")[0] in title
    assert f"token-major {token.strip()}; head-major {head.strip()};" in said
    numbers = shown.locator(".mv-layout-formulas b").all_text_contents()
    assert numbers == [token.strip(), head.strip()]
    for caption, spans in zip(
        shown.locator(".mv-layout-spans").all(), (token_spans, head_spans), strict=True
    ):
        assert spans.strip() in (caption.text_content() or "")
    for name, spans, offset in zip(
        ("token-major", "head-major"), (token_spans, head_spans), (token, head), strict=True
    ):
        grid = shown.get_by_role("grid", name=name)
        chosen = grid.locator("[aria-selected=true]")
        assert chosen.text_content() == offset.split(" = ")[-1]
        marked = {int(text) for text in grid.locator(".mv-layout-of").all_text_contents()}
        runs = [tuple(map(int, run)) for run in re.findall(r"(\d+) to (\d+)", spans)]
        assert marked == {at for first, last in runs for at in range(first, last + 1)}


@pytest.mark.parametrize("index", range(3))
def test_it_says_what_the_package_says(page: Page, index: int) -> None:
    shown = view(page, index)
    assert picked(shown) == PICKED[index]
    check_says(shown, SIZES[index])
    shown.focus()
    for key in ("Home", "ArrowDown", "ArrowRight", "End"):
        page.keyboard.press(key)
        check_says(shown, SIZES[index])


def test_arrows_move_by_row_and_element(page: Page) -> None:
    shown = view(page)
    shown.focus()
    check_keys(
        page,
        lambda: picked(shown),
        ("ArrowRight", (3, 7)),
        ("ArrowRight", (3, 7)),
        ("ArrowUp", (2, 7)),
        ("ArrowLeft", (2, 6)),
        ("ArrowDown", (3, 6)),
        ("Home", (0, 0)),
        ("ArrowUp", (0, 0)),
        ("End", (5, 7)),
    )


def test_in_a_grid_arrows_move_to_the_cell_beside(page: Page) -> None:
    shown = view(page)
    grid = shown.get_by_role("grid", name="head-major: 2 x 6 x 4")
    grid.get_by_role("gridcell", name="offset 20:").click()  # row 5, head 0: the last of its head
    assert picked(shown) == (5, 0)

    def focused() -> tuple[int, int]:
        expect(grid.locator("[aria-selected=true]")).to_be_focused()
        assert grid.locator("[tabindex='0']").count() == 1
        return picked(shown)

    check_keys(
        page,
        focused,
        ("ArrowDown", (0, 4)),
        ("ArrowLeft", (0, 4)),
        ("ArrowRight", (0, 5)),
        ("ArrowUp", (5, 1)),
    )
    page.keyboard.press("PageDown")
    assert picked(shown) == (5, 2)
    expect(grid.locator("[aria-selected=true]")).to_be_focused()


def test_page_down_walks_memory_in_either_layout(page: Page) -> None:
    shown = view(page)
    shown.focus()
    for name in ("token-major", "head-major"):
        assert shown.get_attribute("data-walk") == name
        page.keyboard.press("Home")
        chosen = shown.get_by_role("grid", name=name).locator("[aria-selected=true]")
        for offset in range(1, 8):
            page.keyboard.press("PageDown")
            assert chosen.text_content() == str(offset)
        page.keyboard.press("PageUp")
        assert chosen.text_content() == "6"
        page.keyboard.press("m")
    assert shown.get_attribute("data-walk") == "token-major"


def test_the_pointer_shows_and_a_click_takes(page: Page) -> None:
    shown = view(page)
    grid = shown.get_by_role("grid", name="token-major: 6 x 8")
    grid.get_by_role("gridcell", name="offset 9:").hover()
    assert picked(shown) == (1, 1)
    check_says(shown, SIZES[0])
    page.mouse.move(0, 0)
    assert picked(shown) == (3, 6)
    grid.get_by_role("gridcell", name="offset 9:").click()
    page.mouse.move(0, 0)
    assert picked(shown) == (1, 1) == picked(view(page, 3))  # another display of the widget follows
    shown.locator(".mv-layout-strip").nth(1).locator("i").nth(38).click()
    page.mouse.move(0, 0)
    assert picked(shown) == (3, 6)


def test_play_walks(page: Page) -> None:
    shown = view(page)
    shown.focus()
    page.keyboard.press("Space")
    page.wait_for_function("document.querySelector('.mv').dataset.element === '7'")
    shown.get_by_role("button", name="Pause").click()
    row, element = picked(shown)
    page.wait_for_timeout(400)
    assert picked(shown) == (row, element)


def test_the_accessibility_tree(page: Page) -> None:
    shown = page.get_by_role("group", name="A plane of 6 rows in both layouts").first
    for name, rows in (("token-major: 6 x 8", 7), ("head-major: 2 x 6 x 4", 12)):
        grid = shown.get_by_role("grid", name=name)
        assert grid.get_by_role("row").count() == rows
        assert grid.get_by_role("gridcell").count() == 48
    assert (
        shown.get_by_role("grid", name="head-major").get_by_role("rowheader", name="head 1, row 5").count()
        == 1
    )
    cell = shown.get_by_role("gridcell", selected=True).first
    expect(cell).to_have_accessible_name("offset 30: row 3, element 6, KV head 1, dim 2")
    strip = shown.get_by_role(
        "img", name="head-major as memory, 48 elements: the element at 38; KV head 1 is 1 span: 24 to 47"
    )
    expect(strip).to_be_visible()
    check_there(shown, "button", "Back", "Next in memory", "Play", "Walks: token-major", "Full screen")


def test_the_theme_is_followed(page: Page) -> None:
    cell = view(page).get_by_role("gridcell", name="offset 0:").first
    check_theme(page, cell, "(c) => getComputedStyle(c).backgroundColor")


def test_full_screen_is_readable_and_walks(page: Page) -> None:
    shown = view(page)
    height = "(v) => v.querySelector('[role=gridcell]').getBoundingClientRect().height"
    before = shown.evaluate(height)
    with resized(page, 1920, 1080), full_screen(page, shown, "[role=gridcell]"):
        page.keyboard.press("PageDown")
        assert picked(shown) == (3, 7)
    assert shown.evaluate(height) == before


def test_a_narrow_screen_shows_all(page: Page) -> None:
    check_width(page)
