from __future__ import annotations

import re
from collections.abc import Iterator

import lab as jupyter
import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

import muser_viz as mv
from muser_viz.thread_picture import thread_sentence
from muser_viz.threads import StoreLaunch

TINY = """
def tiny(head_major, capacity=5, held=4, count=3):
    plane = mv.KvPlane(capacity, 2, 2, head_major)
    rows = np.zeros((held, 4), np.float32)
    plane.append_batch(0, rows, rows)
    return mv.store_launch(plane, count)
"""
VIEWS = (
    "mv.StoreView(tiny(False), tiny(True), step=5)",
    "mv.StoreView(tiny(False, count=None))",
    "mv.StoreView(tiny(True, 4, 3, 7), past=5)",
    "mv.StoreView(tiny(False, count=None), tiny(True, count=None), past=0)",
)


def tiny(head_major: bool, capacity: int = 5, held: int = 4, count: int | None = 3) -> StoreLaunch:
    plane = mv.KvPlane(capacity, 2, 2, head_major)
    plane.append_batch(0, np.zeros((held, 4), np.float32), np.zeros((held, 4), np.float32))
    return mv.store_launch(plane, count)


LAUNCHES = (
    ((tiny(False), tiny(True)), 4),
    ((tiny(False, count=None),), 4),
    ((tiny(True, 4, 3, 7),), 5),
    ((tiny(False, count=None), tiny(True, count=None)), 0),
)


@pytest.fixture(scope="module")
def opened(pages: jupyter.Pages) -> Iterator[tuple[Page, list[str]]]:
    first = "import numpy as np\nimport muser_viz as mv\n" + TINY + "view = " + VIEWS[0] + "\nview"
    page, heard = pages.open("stores.ipynb", first, *VIEWS[1:], "view", views=5)
    yield page, heard
    assert heard == []


@pytest.fixture
def page(opened: tuple[Page, list[str]]) -> Page:
    page, _ = opened
    for view in page.locator(".mv").all():
        view.focus()
        page.keyboard.press("r")
    return page


def shown(page: Page, index: int = 0) -> Locator:
    return page.locator(".mv").nth(index)


def step_of(view: Locator) -> int:
    return int(view.get_attribute("data-step") or "none")


def held(block: Locator) -> set[int]:
    return {int(text) for text in block.locator("i.mv-store-held").all_text_contents()}


@pytest.mark.parametrize("index", range(4))
def test_every_step_is_the_package_s_own(page: Page, index: int) -> None:
    view, (launches, past) = shown(page, index), LAUNCHES[index]
    view.focus()
    page.keyboard.press("Home")
    tables = [launch.threads() for launch in launches]
    count = launches[0].grid + past
    for step in range(-1, count + 1):
        assert step_of(view) == step
        assert view.locator(".mv-says").text_content() == thread_sentence(launches, past, step)
        ran = slice(0, max(0, step + 1))
        for plane, table in zip(view.locator(".mv-store-plane").all(), tables, strict=True):
            assert held(plane) == set(table["cell"][ran].tolist())
        assert held(view.locator(".mv-store-source")) == set(tables[0]["source"][ran].tolist())
        numbers = view.locator(".mv-store-sums b").all_text_contents()
        if not 0 <= step < count:
            assert numbers == []
        elif step >= launches[0].grid:
            assert len(numbers) == 1
            assert numbers[0].endswith("returns")
        else:
            cells = [int(table["cell"][step]) for table in tables]
            assert {f"= {cell}" for cell in cells} <= {
                text[text.index("=") :] for text in numbers if text.count("=") == 1
            }
            assert numbers[-1].endswith(f"= key[{tables[0]['source'][step]}]")
            assert all(f"[{cell}]" in numbers[-1] for cell in cells)
        page.keyboard.press("PageDown")
    assert step_of(view) == count


def test_the_arithmetic_has_the_thread_s_numbers(page: Page) -> None:
    view = shown(page)
    assert view.locator(".mv-store-sums b").all_text_contents() == [
        "5 < 3 * 4, stores",
        "0 + 5 / 4 = 1",
        "5 % 4 = 1",
        "4 + 1 - 2 = 3",
        "(2 + 3) % 5 = 0",
        "0 * 4 + 1 = 1",
        "1 / 2 = 0, 1 % 2 = 1",
        "(0 * 5 + 0) * 2 + 1 = 1",
        "1 * 4 + 1 = 5",
        "[1] or [1] = key[5]",
    ]
    told = view.locator(".mv-store-told").text_content() or ""
    assert told.startswith(
        "muser_kv_store_batch_f16 is told kv_dim 4, source_first 0, source_count 3, start_position 4,"
    )
    assert told.endswith("head_major 0 or 1")
    one_row = shown(page, 1).locator(".mv-store-told")
    assert one_row.text_content() == "muser_kv_store_f16 is told kv_dim 4, write_index 4"


def test_keys_and_buttons(page: Page) -> None:
    view = shown(page)
    view.focus()
    for key, step in (
        ("ArrowRight", 6),
        ("PageDown", 7),
        ("ArrowLeft", 6),
        ("PageUp", 5),
        ("ArrowDown", 9),
        ("ArrowUp", 5),
        ("g", 12),
        ("End", 16),
        ("Home", -1),
    ):
        page.keyboard.press(key)
        assert step_of(view) == step, key
        assert step_of(shown(page, 4)) == step  # another display of the widget follows
    view.get_by_role("button", name="All at once").click()
    assert step_of(view) == 16
    view.get_by_role("slider", name="thread").fill("3")
    assert step_of(view) == 3
    view.locator("[data-thread='13']").click()
    assert step_of(view) == 13


def test_threads_past_the_guard_are_crossed_out_and_draw_no_arrow(page: Page) -> None:
    view = shown(page)
    view.focus()
    page.keyboard.press("g")
    idle = view.locator("[data-thread].mv-store-idle")
    assert idle.all_text_contents() == ["12", "13", "14", "15"]
    assert "line-through" in idle.first.evaluate("(e) => getComputedStyle(e).textDecorationLine")
    assert view.locator(".mv-store-arrows .mv-store-mark").count() == 0
    expect(view.locator(".mv-store-sums")).to_contain_text("does nothing")
    page.keyboard.press("ArrowLeft")
    assert (
        view.locator(".mv-store-arrows .mv-store-mark[fill=none]").count() == 3
    )  # to the source, to each plane
    shown(page, 3).focus()
    page.keyboard.press("g")
    expect(shown(page, 3).get_by_role("alert")).to_have_text(
        "this view has no thread past the guard: give past=4"
    )


def test_play_goes_to_all_at_once_and_stops(page: Page) -> None:
    view = shown(page, 1)
    view.focus()
    page.keyboard.press("g")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    assert step_of(view) == 7
    page.keyboard.press("Space")
    page.wait_for_function("document.querySelectorAll('.mv')[1].dataset.step === '8'")
    expect(view).to_have_attribute("data-playing", "no")


def test_the_accessibility_tree(page: Page) -> None:
    view = page.get_by_role("group", name="A store by muser_kv_store_batch_f16: 16 threads").first
    for name in ("16 threads, 4 past the guard", "source rows 0 to 2 of the chunk"):
        expect(view.get_by_role("img", name=name)).to_be_visible()
    expect(view.get_by_role("img", name="head-major plane, 20 cells; written: 0 1 8 9 18 19")).to_be_visible()
    expect(view.get_by_role("status")).to_contain_text("thread 5: source row 1")
    for role, name in (
        ("button", "Back"),
        ("button", "Step"),
        ("button", "All at once"),
        ("slider", "thread"),
    ):
        expect(view.get_by_role(role, name=name, exact=True)).to_be_visible()  # type: ignore[arg-type]


def test_the_theme_is_followed(page: Page) -> None:
    cell = shown(page).locator(".mv-store-plane i").nth(8)
    colour = "(c) => getComputedStyle(c).backgroundColor"
    light = cell.evaluate(colour)
    jupyter.theme(page, "Dark")
    assert cell.evaluate(colour) != light
    jupyter.theme(page, "Light")
    assert cell.evaluate(colour) == light


def test_full_screen_fits_and_is_readable(page: Page) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    for index in range(2):
        view = shown(page, index)
        view.focus()
        page.keyboard.press("f")
        expect(view).to_have_class(re.compile("mv-full"))
        page.wait_for_timeout(200)
        size = view.evaluate(
            "(v) => parseFloat(getComputedStyle(v.querySelector('[data-thread]')).fontSize) / innerHeight"
        )
        assert size > 0.019
        assert view.evaluate("(v) => v.scrollHeight <= innerHeight && v.scrollWidth <= innerWidth")
        page.keyboard.press("f")
        expect(view).not_to_have_class(re.compile("mv-full"))
    page.set_viewport_size({"width": 1200, "height": 1000})


def test_a_narrow_screen_shows_all(page: Page) -> None:
    page.evaluate("jupyterapp.shell.collapseLeft()")
    page.set_viewport_size({"width": 420, "height": 900})
    page.wait_for_timeout(300)
    outside = [
        shown(page, index).evaluate(
            """(v) => [...v.querySelectorAll('button, p, i, code, b, input')].filter((e) =>
              e.getBoundingClientRect().right > v.getBoundingClientRect().right + 1)
              .map((e) => e.outerHTML)"""
        )
        for index in range(4)
    ]
    page.set_viewport_size({"width": 1200, "height": 1000})
    assert outside == [[], [], [], []]
