from __future__ import annotations

import numpy as np
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

FIRST = f"import numpy as np\nimport muser_viz as mv\n{TINY}view = {VIEWS[0]}\nview"

opened = notebook("stores.ipynb", FIRST, *VIEWS[1:], "view", views=5)


def step_of(shown: Locator) -> int:
    return number(shown, "step")


def held(block: Locator) -> set[int]:
    return {int(text) for text in block.locator("i.mv-store-held").all_text_contents()}


@pytest.mark.parametrize("index", range(4))
def test_every_step_is_the_package_s_own(page: Page, index: int) -> None:
    shown, (launches, past) = view(page, index), LAUNCHES[index]
    shown.focus()
    page.keyboard.press("Home")
    tables = [launch.threads() for launch in launches]
    count = launches[0].grid + past
    for step in range(-1, count + 1):
        assert step_of(shown) == step
        assert says(shown) == thread_sentence(launches, past, step)
        ran = slice(0, max(0, step + 1))
        for plane, table in zip(shown.locator(".mv-store-plane").all(), tables, strict=True):
            assert held(plane) == set(table["cell"][ran].tolist())
        assert held(shown.locator(".mv-store-source")) == set(tables[0]["source"][ran].tolist())
        numbers = shown.locator(".mv-store-sums b").all_text_contents()
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
    assert step_of(shown) == count


def test_the_arithmetic_has_the_thread_s_numbers(page: Page) -> None:
    shown = view(page)
    assert shown.locator(".mv-store-sums b").all_text_contents() == [
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
    told = shown.locator(".mv-store-told").text_content() or ""
    assert told.startswith(
        "muser_kv_store_batch_f16 is told kv_dim 4, source_first 0, source_count 3, start_position 4,"
    )
    assert told.endswith("head_major 0 or 1")
    one_row = view(page, 1).locator(".mv-store-told")
    assert one_row.text_content() == "muser_kv_store_f16 is told kv_dim 4, write_index 4"


def test_keys_and_buttons(page: Page) -> None:
    shown = view(page)
    shown.focus()

    def step() -> int:
        assert step_of(view(page, 4)) == step_of(shown)  # another display of the widget follows
        return step_of(shown)

    check_keys(
        page,
        step,
        ("ArrowRight", 6),
        ("PageDown", 7),
        ("ArrowLeft", 6),
        ("PageUp", 5),
        ("ArrowDown", 9),
        ("ArrowUp", 5),
        ("g", 12),
        ("End", 16),
        ("Home", -1),
    )
    shown.get_by_role("button", name="All at once").click()
    assert step_of(shown) == 16
    shown.get_by_role("slider", name="thread").fill("3")
    assert step_of(shown) == 3
    shown.locator("[data-thread='13']").click()
    assert step_of(shown) == 13


def test_threads_past_the_guard_are_crossed_out_and_draw_no_arrow(page: Page) -> None:
    shown = view(page)
    shown.focus()
    page.keyboard.press("g")
    idle = shown.locator("[data-thread].mv-store-idle")
    assert idle.all_text_contents() == ["12", "13", "14", "15"]
    assert "line-through" in idle.first.evaluate("(e) => getComputedStyle(e).textDecorationLine")
    assert shown.locator(".mv-store-arrows .mv-store-mark").count() == 0
    expect(shown.locator(".mv-store-sums")).to_contain_text("does nothing")
    page.keyboard.press("ArrowLeft")
    assert (
        shown.locator(".mv-store-arrows .mv-store-mark[fill=none]").count() == 3
    )  # to the source, to each plane
    view(page, 3).focus()
    page.keyboard.press("g")
    expect(view(page, 3).get_by_role("alert")).to_have_text(
        "this view has no thread past the guard: give past=4"
    )


def test_play_goes_to_all_at_once_and_stops(page: Page) -> None:
    shown = view(page, 1)
    shown.focus()
    page.keyboard.press("g")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    assert step_of(shown) == 7
    page.keyboard.press("Space")
    page.wait_for_function("document.querySelectorAll('.mv')[1].dataset.step === '8'")
    expect(shown).to_have_attribute("data-playing", "no")


def test_the_accessibility_tree(page: Page) -> None:
    shown = page.get_by_role("group", name="A store by muser_kv_store_batch_f16: 16 threads").first
    for name in ("16 threads, 4 past the guard", "source rows 0 to 2 of the chunk"):
        expect(shown.get_by_role("img", name=name)).to_be_visible()
    expect(
        shown.get_by_role("img", name="head-major plane, 20 cells; written: 0 1 8 9 18 19")
    ).to_be_visible()
    expect(shown.get_by_role("status")).to_contain_text("thread 5: source row 1")
    check_there(shown, "button", "Back", "Step", "All at once")
    check_there(shown, "slider", "thread")


def test_the_theme_is_followed(page: Page) -> None:
    cell = view(page).locator(".mv-store-plane i").nth(8)
    check_theme(page, cell, "(c) => getComputedStyle(c).backgroundColor")


def test_full_screen_fits_and_is_readable(page: Page) -> None:
    with resized(page, 1920, 1080):
        for index in range(2):
            with full_screen(page, view(page, index), "[data-thread]"):
                pass


def test_a_narrow_screen_shows_all(page: Page) -> None:
    check_width(page)
