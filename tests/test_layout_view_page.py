from __future__ import annotations

import re
from collections.abc import Iterator

import lab as jupyter
import pytest
from playwright.sync_api import Locator, Page, expect

from muser_viz.layout_picture import layouts_text

START = "import muser_viz as mv\n"
SIZES = ((6, 2, 4), (8, 3, 4), (3, 1, 5))
PICKED = ((3, 6), (7, 11), (0, 0))
CELLS = [START + f"view = mv.LayoutView{(*PICKED[0], *SIZES[0])}\nview"]
CELLS += [f"mv.LayoutView{(*picked, *sizes)}" for picked, sizes in zip(PICKED[1:], SIZES[1:], strict=True)]


@pytest.fixture(scope="module")
def opened(pages: jupyter.Pages) -> Iterator[tuple[Page, list[str]]]:
    page, heard = pages.open("layouts.ipynb", *CELLS, "view", views=4)
    yield page, heard
    assert heard == []


@pytest.fixture
def page(opened: tuple[Page, list[str]]) -> Page:
    page, _ = opened
    page.mouse.move(0, 0)
    for view in page.locator(".mv").all():
        view.focus()
        page.keyboard.press("r")
    return page


def shown(page: Page, index: int = 0) -> Locator:
    return page.locator(".mv").nth(index)


def picked(view: Locator) -> tuple[int, int]:
    return int(view.get_attribute("data-row") or "none"), int(view.get_attribute("data-element") or "none")


def check_says(view: Locator, sizes: tuple[int, int, int]) -> None:
    """Formulas, spans and marked cells are those of the package's text."""
    row, element = picked(view)
    title, _, token, token_spans, _, head, head_spans = layouts_text(row, element, *sizes).splitlines()
    said = view.locator(".mv-says").text_content() or ""
    assert said.startswith(
        f"row {row}, element {element}: KV head {element // sizes[2]}, dim {element % sizes[2]} (E); "
    )
    assert said.split("; ")[0] in title
    assert f"token-major {token.strip()}; head-major {head.strip()};" in said
    numbers = view.locator(".mv-layout-formulas b").all_text_contents()
    assert numbers == [token.strip(), head.strip()]
    for caption, spans in zip(view.locator(".mv-layout-spans").all(), (token_spans, head_spans), strict=True):
        assert spans.strip() in (caption.text_content() or "")
    for name, spans, offset in zip(
        ("token-major", "head-major"), (token_spans, head_spans), (token, head), strict=True
    ):
        grid = view.get_by_role("grid", name=name)
        chosen = grid.locator("[aria-selected=true]")
        assert chosen.text_content() == offset.split(" = ")[-1]
        marked = {int(text) for text in grid.locator(".mv-layout-of").all_text_contents()}
        runs = [tuple(map(int, run)) for run in re.findall(r"(\d+) to (\d+)", spans)]
        assert marked == {at for first, last in runs for at in range(first, last + 1)}


@pytest.mark.parametrize("index", range(3))
def test_it_says_what_the_package_says(page: Page, index: int) -> None:
    view = shown(page, index)
    assert picked(view) == PICKED[index]
    check_says(view, SIZES[index])
    view.focus()
    for key in ("Home", "ArrowDown", "ArrowRight", "End"):
        page.keyboard.press(key)
        check_says(view, SIZES[index])


def test_arrows_move_by_row_and_element(page: Page) -> None:
    view = shown(page)
    view.focus()
    for key, wanted in (
        ("ArrowRight", (3, 7)),
        ("ArrowRight", (3, 7)),
        ("ArrowUp", (2, 7)),
        ("ArrowLeft", (2, 6)),
        ("ArrowDown", (3, 6)),
        ("Home", (0, 0)),
        ("ArrowUp", (0, 0)),
        ("End", (5, 7)),
    ):
        page.keyboard.press(key)
        assert picked(view) == wanted, key


def test_in_a_grid_arrows_move_to_the_cell_beside(page: Page) -> None:
    view = shown(page)
    grid = view.get_by_role("grid", name="head-major: 2 x 6 x 4")
    grid.get_by_role("gridcell", name="offset 20:").click()  # row 5, head 0: the last of its head
    assert picked(view) == (5, 0)
    for key, wanted in (
        ("ArrowDown", (0, 4)),
        ("ArrowLeft", (0, 4)),
        ("ArrowRight", (0, 5)),
        ("ArrowUp", (5, 1)),
    ):
        page.keyboard.press(key)
        assert picked(view) == wanted, key
        expect(grid.locator("[aria-selected=true]")).to_be_focused()
        assert grid.locator("[tabindex='0']").count() == 1
    page.keyboard.press("PageDown")
    assert picked(view) == (5, 2)
    expect(grid.locator("[aria-selected=true]")).to_be_focused()


def test_page_down_walks_memory_in_either_layout(page: Page) -> None:
    view = shown(page)
    view.focus()
    for name in ("token-major", "head-major"):
        assert view.get_attribute("data-walk") == name
        page.keyboard.press("Home")
        chosen = view.get_by_role("grid", name=name).locator("[aria-selected=true]")
        for offset in range(1, 8):
            page.keyboard.press("PageDown")
            assert chosen.text_content() == str(offset)
        page.keyboard.press("PageUp")
        assert chosen.text_content() == "6"
        page.keyboard.press("m")
    assert view.get_attribute("data-walk") == "token-major"


def test_the_pointer_shows_and_a_click_takes(page: Page) -> None:
    view = shown(page)
    grid = view.get_by_role("grid", name="token-major: 6 x 8")
    grid.get_by_role("gridcell", name="offset 9:").hover()
    assert picked(view) == (1, 1)
    check_says(view, SIZES[0])
    page.mouse.move(0, 0)
    assert picked(view) == (3, 6)
    grid.get_by_role("gridcell", name="offset 9:").click()
    page.mouse.move(0, 0)
    assert picked(view) == (1, 1) == picked(shown(page, 3))  # another display of the widget follows
    view.locator(".mv-layout-strip").nth(1).locator("i").nth(38).click()
    page.mouse.move(0, 0)
    assert picked(view) == (3, 6)


def test_play_walks(page: Page) -> None:
    view = shown(page)
    view.focus()
    page.keyboard.press("Space")
    page.wait_for_function("document.querySelector('.mv').dataset.element === '7'")
    view.get_by_role("button", name="Pause").click()
    row, element = picked(view)
    page.wait_for_timeout(400)
    assert picked(view) == (row, element)


def test_the_accessibility_tree(page: Page) -> None:
    view = page.get_by_role("group", name="A plane of 6 rows in both layouts").first
    for name, rows in (("token-major: 6 x 8", 7), ("head-major: 2 x 6 x 4", 12)):
        grid = view.get_by_role("grid", name=name)
        assert grid.get_by_role("row").count() == rows
        assert grid.get_by_role("gridcell").count() == 48
    assert (
        view.get_by_role("grid", name="head-major").get_by_role("rowheader", name="head 1, row 5").count()
        == 1
    )
    cell = view.get_by_role("gridcell", selected=True).first
    expect(cell).to_have_accessible_name("offset 30: row 3, element 6, KV head 1, dim 2")
    strip = view.get_by_role(
        "img", name="head-major as memory, 48 elements: the element at 38; KV head 1 is 1 span: 24 to 47"
    )
    expect(strip).to_be_visible()
    for name in ("Back", "Next in memory", "Play", "Walks: token-major", "Full screen"):
        expect(view.get_by_role("button", name=name, exact=True)).to_be_visible()


def test_the_theme_is_followed(page: Page) -> None:
    cell = shown(page).get_by_role("gridcell", name="offset 0:").first
    colour = "(c) => getComputedStyle(c).backgroundColor"
    light = cell.evaluate(colour)
    jupyter.theme(page, "Dark")
    assert cell.evaluate(colour) != light
    jupyter.theme(page, "Light")
    assert cell.evaluate(colour) == light


def test_full_screen_is_readable_and_walks(page: Page) -> None:
    view = shown(page)
    before = view.evaluate("(v) => v.querySelector('[role=gridcell]').getBoundingClientRect().height")
    view.focus()
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.keyboard.press("f")
    expect(view).to_have_class(re.compile("mv-full"))
    page.wait_for_timeout(200)
    size = view.evaluate(
        "(v) => parseFloat(getComputedStyle(v.querySelector('[role=gridcell]')).fontSize) / innerHeight"
    )
    assert size > 0.019
    assert view.evaluate("(v) => v.scrollHeight <= innerHeight")
    page.keyboard.press("PageDown")
    assert picked(view) == (3, 7)
    page.keyboard.press("f")
    expect(view).not_to_have_class(re.compile("mv-full"))
    page.set_viewport_size({"width": 1200, "height": 1000})
    page.wait_for_timeout(200)
    assert view.evaluate("(v) => v.querySelector('[role=gridcell]').getBoundingClientRect().height") == before


def test_a_narrow_screen_shows_all(page: Page) -> None:
    page.evaluate("jupyterapp.shell.collapseLeft()")
    page.set_viewport_size({"width": 420, "height": 900})
    page.wait_for_timeout(300)
    outside = [
        shown(page, index).evaluate(
            """(v) => [...v.querySelectorAll('button, p, [role=gridcell], [role=img], code')].filter((e) =>
              e.getBoundingClientRect().right > v.getBoundingClientRect().right + 1)
              .map((e) => e.outerHTML)"""
        )
        for index in range(3)
    ]
    page.set_viewport_size({"width": 1200, "height": 1000})
    assert outside == [[], [], []]
