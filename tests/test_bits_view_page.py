from __future__ import annotations

import re

import numpy as np
import pytest
from page_checks import (
    CANVAS,
    check_keys,
    check_theme,
    check_there,
    check_width,
    full_screen,
    notebook,
    number,
    says,
    type_in,
    view,
)
from playwright.sync_api import Locator, Page, expect

import muser_viz as mv
from muser_viz.word_pairs import pair_text

LONG = """import numpy as np
import muser_viz as mv
a = np.zeros(200_000, np.float32)
b = a.copy()
b[[5, 777, 150_000]] = [1, np.nan, -0.0]
mv.BitsView(a, b, ("own", "row 0"))"""

# powers of two are ties of a rounding to few digits; every kind of word is there
ODD = [0, -0.0, np.inf, -np.inf, 1e9, 123456792, 1e-45, 1e-39, -7.5, 1 / 3, np.nan, 0.125]
F32 = np.array([*(2.0 ** -np.arange(1, 40)), *ODD], np.float32)
F16 = np.array([1, 0.125, 65504, 6e-8, 1e-5, -0.0, np.inf, np.nan, 3.1415, 0.001], np.float16)
OTHER = {32: np.roll(F32, 1), 16: np.roll(F16, 1)}
OTHER[32][4] = F32[4]
SHORT = """import numpy as np
import muser_viz as mv
a = np.frombuffer(bytes.fromhex("{}"), np.{})
b = np.frombuffer(bytes.fromhex("{}"), np.{})
mv.BitsView(a, b, index=0)"""


def short(a: np.ndarray, b: np.ndarray) -> str:
    return SHORT.format(a.tobytes().hex(), a.dtype, b.tobytes().hex(), b.dtype)


opened = notebook("bits.ipynb", LONG, short(F32, OTHER[32]), short(F16, OTHER[16]), views=3)


def word(shown: Locator) -> int:
    return number(shown, "index")


def test_keys_and_buttons_go_to_words(page: Page) -> None:
    shown = view(page, 0)
    shown.focus()
    assert word(shown) == 5
    check_keys(
        page,
        lambda: word(shown),
        ("PageDown", 777),
        ("ArrowRight", 778),
        ("ArrowLeft", 777),
        ("ArrowDown", 809),
        ("ArrowUp", 777),
        ("PageDown", 150_000),
        ("PageDown", 150_000),
        ("PageUp", 777),
        ("m", 5),
        ("End", 199_999),
        ("PageUp", 150_000),
        ("Home", 0),
    )
    shown.get_by_role("button", name="Next that differs").click()
    assert word(shown) == 5
    expect(shown.get_by_role("button", name="Previous")).to_have_attribute("aria-disabled", "true")


@pytest.mark.parametrize(("index", "a"), [(1, F32), (2, F16)])
def test_every_word_is_told_as_the_package_tells_it(page: Page, index: int, a: np.ndarray) -> None:
    shown, b = view(page, index), OTHER[8 * a.itemsize]
    differ = f"{int(mv.differing(a, b).sum())} of {len(a)} words differ"
    told = shown.evaluate(
        """(v, count) => Array.from({ length: count }, () => {
          const bits = (k) => [...v.querySelectorAll(`.mv-pair-row:nth-child(${k}) i`)];
          const row = (k) => bits(k).map((e) => e.textContent).join('');
          const said = v.querySelector('.mv-says').textContent;
          const told = [said, row(2), row(3), v.querySelectorAll('.mv-pair-lit').length];
          v.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
          return told;
        })""",
        len(a),
    )
    assert len(told) == len(a)
    for at, (said, *rows, lit) in enumerate(told):
        assert said == f"{differ}\n{pair_text(('a', 'b'), at, a[at], b[at])}"
        raw = [int(each[at].view(f"u{a.itemsize}")) for each in (a, b)]
        assert rows == [f"{word:0{8 * a.itemsize}b}" for word in raw]
        assert lit == 2 * (raw[0] ^ raw[1]).bit_count()


def test_the_strips_are_clicked_and_dragged(page: Page) -> None:
    shown = view(page, 0)
    strip = shown.get_by_role("slider", name="word")
    box = strip.bounding_box()
    assert box is not None
    strip.click(position={"x": box["width"] * 0.75 + 0.5, "y": 20})
    assert word(shown) == 150_000  # the differing word of its bin
    near = shown.locator(".mv-bits-near canvas")
    near.click(position={"x": 2, "y": 10})
    assert 149_980 < word(shown) < 150_000
    box = strip.bounding_box()
    assert box is not None
    x, y = box["x"], box["y"] + 20
    page.mouse.move(x + box["width"] / 2, y)
    page.mouse.down()
    page.mouse.move(x + 2 * box["width"], y)
    page.mouse.up()
    assert word(shown) > 199_000
    strip.focus()
    page.keyboard.press("Home")
    assert word(shown) == 0


def test_a_jump_goes_to_a_word_or_says_why_not(page: Page) -> None:
    shown = view(page, 0)
    type_in(shown, "word", 777)
    assert "no distance: a NaN lies on no number line" in says(shown)
    type_in(shown, "word", 200_000)
    assert word(shown) == 777
    expect(shown.get_by_role("alert")).to_have_text("word 200000 was asked for; there are words 0 to 199,999")


def test_the_accessibility_tree(page: Page) -> None:
    group = page.get_by_role("group", name="The bits of own and row 0, 200,000 words")
    strip = group.get_by_role("slider", name="word")
    expect(strip).to_have_attribute("aria-valuenow", "5")
    expect(strip).to_have_attribute(
        "aria-valuetext", re.compile("^word 5: own 0x00000000 = 0, row 0 0x3f800000 = 1;")
    )
    expect(group.get_by_role("img", name="word 5, sign, exponent, mantissa")).to_have_attribute(
        "aria-label",
        f"word 5, sign, exponent, mantissa: own 0 {8 * '0'} {23 * '0'}, row 0 0 01111111 {23 * '0'}",
    )
    expect(group.get_by_role("img", name="words 0 to 32, 1 of them differ")).to_be_visible()
    check_there(group, "button", "Previous", "Next that differs", "Furthest apart", "Full screen", "Keys")


def test_a_theme_redraws_and_a_narrow_or_full_screen_clips_nothing(page: Page) -> None:
    shown = view(page, 0)
    drawn = shown.evaluate(CANVAS)
    check_theme(page, shown, CANVAS)
    check_width(page)
    with full_screen(page, shown):
        pass
    page.wait_for_timeout(200)
    assert shown.evaluate(CANVAS) == drawn
