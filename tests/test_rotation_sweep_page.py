from __future__ import annotations

import numpy as np
from page_checks import (
    CANVAS,
    check_keys,
    check_theme,
    check_there,
    check_width,
    full_screen,
    notebook,
    number,
    resized,
    says,
    type_in,
    view,
)
from playwright.sync_api import Locator, Page, expect

import muser_viz as mv
from muser_viz.sweeps import Sweep

MADE = """import numpy as np
import muser_viz as mv
plane = mv.KvPlane(256, 2, 16)
plane.append_batch(0, mv.seeded(1, 300, 32), mv.seeded(2, 300, 32))
swept = mv.sweep_rotations(plane, mv.seeded(3, 4, 16) * np.float32(4))
swept[200:210] = swept[44]
mv.RotationSweep(swept, 44, 0)"""
OTHER = "mv.BitsView(swept[0], swept[1])"  # its style sheet comes after the sweep's
FEW = "mv.RotationSweep(np.eye(6, dtype=np.float32), 2)"


def made() -> np.ndarray:
    plane = mv.KvPlane(256, 2, 16)
    plane.append_batch(0, mv.seeded(1, 300, 32), mv.seeded(2, 300, 32))
    swept = mv.sweep_rotations(plane, mv.seeded(3, 4, 16) * np.float32(4))
    swept[200:210] = swept[44]
    return swept


opened = notebook("sweep.ipynb", MADE, FEW, OTHER, views=3)


def picked(shown: Locator) -> int:
    return number(shown, "picked")


def test_keys_and_buttons_pick_rotations(page: Page) -> None:
    shown, sweep = view(page), Sweep.of(made(), 44)
    shown.focus()
    check_keys(
        page,
        lambda: picked(shown),
        ("ArrowRight", 1),
        ("ArrowDown", 33),
        ("ArrowUp", 1),
        ("ArrowLeft", 0),
        ("o", 44),
        ("PageDown", 45),
        ("PageUp", 43),  # over the own one, which differs nowhere
        ("m", sweep.furthest),
        ("End", 255),
        ("Home", 0),
    )
    type_in(shown, "rotation", 199)
    shown.get_by_role("button", name="Next that differs").click()
    assert picked(shown) == 210
    shown.get_by_role("button", name="Own").click()
    assert says(shown) == "picked rotation 44: the own one"
    expect(shown.locator(".mv-pair")).to_be_hidden()
    type_in(shown, "rotation", 256)
    expect(shown.get_by_role("alert")).to_have_text(
        "rotation 256 was asked for; there are rotations 0 to 255"
    )


def test_every_rotation_is_told_as_the_package_tells_it(page: Page) -> None:
    shown, sweep = view(page), Sweep.of(made(), 44)
    assert shown.locator(".mv-sweep-facts").inner_text() == sweep.summary()
    told = shown.evaluate(
        """(v) => Array.from({ length: 256 }, () => {
          const told = [v.querySelector('.mv-says').textContent, !v.querySelector('.mv-pair').hidden];
          v.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
          return told;
        })"""
    )
    assert told == [[sweep.said(rotation), bool(sweep.counts[rotation])] for rotation in range(256)]
    for measure in ("size", "ulp", "words"):
        shown.get_by_role("combobox", name="what the map shows").select_option(measure)
        for fold in sweep.folds:
            shown.get_by_role("combobox", name="rotations a line").select_option(str(fold))
            said = shown.locator(".mv-sweep-period").inner_text().replace("\N{NO-BREAK SPACE}", " ")
            assert said == sweep.folded(measure, fold)
            expect(shown.get_by_role("img", name=f"of all rotations, {fold} a line")).to_be_visible()


def test_the_bits_shown_are_those_of_the_largest_difference(page: Page) -> None:
    shown, sweep = view(page), Sweep.of(made(), 44)
    for row, words in enumerate((sweep.own_words, sweep.other_words)):
        bits = shown.locator(f".mv-pair-field .mv-pair-row:nth-child({row + 2}) i").all_inner_texts()
        assert "".join(bits) == f"{int(words[:1].view(np.uint32)[0]):032b}"


def test_the_pointer_picks_on_plots_and_map(page: Page) -> None:
    shown = view(page)
    whole = shown.get_by_role("slider").first
    box = whole.bounding_box()
    assert box is not None
    whole.click(position={"x": box["width"] / 2, "y": 30})
    assert abs(picked(shown) - 128) <= 1
    near = shown.locator(".mv-sweep-near canvas").first
    near.click(position={"x": 8, "y": 30})
    assert 100 < picked(shown) < 110
    box = whole.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 10, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] - 50, box["y"] + 20)
    page.mouse.up()
    assert picked(shown) == 0
    grid = shown.locator(".mv-sweep-map canvas")
    size = grid.bounding_box()
    assert size is not None
    grid.click(position={"x": size["width"] - 2, "y": size["height"] - 2})
    assert picked(shown) == 255
    grid.click(position={"x": 2, "y": size["height"] - 2})
    assert picked(shown) == 224


def test_few_rotations_have_no_map_and_one_plot_each(page: Page) -> None:
    shown = view(page, 1)
    assert shown.locator(".mv-sweep-facts").inner_text() == Sweep.of(np.eye(6, dtype=np.float32), 2).summary()
    expect(shown.locator(".mv-sweep-map")).to_be_hidden()
    expect(shown.locator(".mv-sweep-near").first).to_be_hidden()
    shown.focus()
    page.keyboard.press("End")
    assert says(shown) == Sweep.of(np.eye(6, dtype=np.float32), 2).said(5)


def test_the_accessibility_tree(page: Page) -> None:
    group = page.get_by_role("group", name="256 rotations of a ring against its own, 44")
    sweep = Sweep.of(made(), 44)
    for name in ("rotation, by words that differ", "rotation, by largest difference"):
        plot = group.get_by_role("slider", name=name)
        expect(plot).to_have_attribute("aria-valuenow", "0")
        expect(plot).to_have_attribute("aria-valuetext", sweep.said(0))
    check_there(group, "button", "Previous", "Next that differs", "Own", "Furthest", "Full screen", "Keys")


def test_a_theme_redraws_and_a_narrow_or_full_screen_clips_nothing(page: Page) -> None:
    shown = view(page)
    drawn = shown.evaluate(CANVAS)
    check_theme(page, shown, CANVAS)
    check_width(page)
    with resized(page, 1920, 1080), full_screen(page, shown):
        picture = shown.locator(".mv-picture > :last-child").bounding_box()
        told = shown.locator(".mv-says").bounding_box()
        assert picture is not None
        assert told is not None
        assert picture["y"] + picture["height"] <= told["y"]
    page.wait_for_timeout(200)
    assert shown.evaluate(CANVAS) == drawn
