from __future__ import annotations

import random
import re

import pytest
from page_checks import (
    check_full_and_on,
    check_theme,
    check_there,
    check_width,
    notebook,
    says,
    type_in,
    view,
)
from playwright.sync_api import Locator, Page, expect

import muser_viz as mv
from muser_viz.staging import staging_sentence
from muser_viz.views.view import front

START = "import muser_viz as mv\nmv.Staging()"
SMALL = "small = mv.Staging(6, 4, 8)\nsmall"


opened = notebook("staging.ipynb", START, SMALL, "small", views=3)


def words(shown: Locator, line: str) -> str:
    return " ".join(shown.locator(f"[data-line={line}] p").inner_text().split())


def check_shows(
    shown: Locator, position: int, chunk: int, window: int, query: int, staged: bool = False
) -> None:
    assert says(shown) == staging_sentence(position, chunk, window, query, staged)
    lost = mv.rows_lost(position, chunk, window)
    assert shown.get_attribute("data-lost") == str(0 if staged else lost[query])
    counts = shown.locator(".mv-staging-counts p b").all_inner_texts()
    span = mv.staged_span(position, chunk, window)
    wanted = [0, 0] if staged else [int(lost[query]), int(lost.sum())]
    assert counts == [f"{n:,}" for n in (*wanted, len(span))]
    assert f"tokens {span[0]:,} to {span[-1]:,}, {len(span):,} rows" in words(shown, "staged")
    gone = 0 if staged else int(lost[query])
    assert words(shown, "sees").endswith(f"{gone:,} lost" if gone else "none lost")


def test_arrows_step_through_the_queries(page: Page) -> None:
    shown = view(page)
    shown.focus()
    for key, query in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 511), ("Home", 0)):
        page.keyboard.press(key)
        check_shows(shown, 2048, 512, 2048, query)
    shown.get_by_role("button", name="Next query").click()
    check_shows(shown, 2048, 512, 2048, 1)
    shown.get_by_role("button", name="Back").click()
    check_shows(shown, 2048, 512, 2048, 0)
    shown.get_by_role("slider", name="query").fill("300")
    check_shows(shown, 2048, 512, 2048, 300)


def test_page_keys_go_through_the_chunk_and_then_through_it_staged(page: Page) -> None:
    shown = view(page)
    shown.focus()
    way = [(q, staged) for staged in (False, True) for q in (0, 128, 256, 384, 511)]
    for query, staged in way[1:]:
        page.keyboard.press("PageDown")
        check_shows(shown, 2048, 512, 2048, query, staged)
    page.keyboard.press("PageDown")
    check_shows(shown, 2048, 512, 2048, 511, True)
    for _ in range(9):
        page.keyboard.press("PageUp")
    check_shows(shown, 2048, 512, 2048, 0)


def test_the_switch(page: Page) -> None:
    shown = view(page)
    stored, staged = (
        shown.get_by_role("button", name=name, exact=True) for name in ("Stored first", "Staged")
    )
    expect(stored).to_have_attribute("aria-pressed", "true")
    staged.click()
    expect(staged).to_have_attribute("aria-pressed", "true")
    check_shows(shown, 2048, 512, 2048, 0, True)
    page.keyboard.press("s")
    check_shows(shown, 2048, 512, 2048, 0)


@pytest.mark.parametrize(
    ("position", "chunk", "window"),
    [(1800, 512, 2048), (1536, 512, 2048), (0, 3, 2048), (2048, 1, 2048), (100, 65_536, 2048), (20, 30, 8)],
)
def test_typed_settings(page: Page, position: int, chunk: int, window: int) -> None:
    shown = view(page)
    for name, value in (("position", position), ("chunk", chunk), ("window", window)):
        type_in(shown, name, value)
    for key, query in (("Home", 0), ("ArrowRight", min(1, chunk - 1)), ("End", chunk - 1)):
        shown.focus()
        page.keyboard.press(key)
        check_shows(shown, position, chunk, window, query)
        page.keyboard.press("s")
        check_shows(shown, position, chunk, window, query, True)
        page.keyboard.press("s")


def test_many_settings_are_equal_to_the_package_s(page: Page) -> None:
    draw = random.Random(9)
    asked = []
    for _ in range(150):
        window, chunk = (
            draw.choice([1, 8, 33, 2048]),
            draw.choice([1, draw.randint(1, 20), draw.randint(1, 3000)]),
        )
        position = draw.choice([0, draw.randint(0, 40), draw.randint(0, 9000), 2**32 - chunk])
        asked.append((position, chunk, window, draw.randint(0, chunk - 1)))
    found = page.evaluate(
        """async ([code, settings]) => {
          const own = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
          const { staging, sentence, pieces } = await import(own);
          return settings.map(([position, chunk, window, query]) => {
            const s = staging({ position, chunk, window, query });
            const by = Array.from({ length: chunk }, (_, i) => s.lostBy(position + i));
            const said = [false, true].map((staged) => sentence(s, chunk, staged));
            const rows = [s.after, s.before].map((span) => pieces(span, window));
            return [by, s.total, s.most, s.staged, s.overwritten, ...said, ...rows];
          });
        }""",
        [front("staging_view")[0] + "\nexport { staging, sentence, pieces };", asked],
    )
    for (by, total, most, staged, overwritten, first, after, rows, rows_before), (
        p,
        chunk,
        window,
        query,
    ) in zip(found, asked, strict=True):
        lost, span = mv.rows_lost(p, chunk, window), mv.staged_span(p, chunk, window)
        assert by == lost.tolist()
        assert (total, most) == (lost.sum(), lost.max())
        assert staged == [span.start, span.stop]
        assert first == staging_sentence(p, chunk, window, query)
        assert after == staging_sentence(p, chunk, window, query, True)
        ring = mv.Ring(window)
        ring.append_batch(0, p)
        before = set(ring.occupants().tolist()) - {-1}
        live = set((ring.occupants() >= 0).nonzero()[0].tolist())
        assert {row for start, n in rows_before for row in range(start, start + n)} == live
        ring.append_batch(p, chunk)
        assert overwritten == len(before - set(ring.occupants().tolist()))
        live = set((ring.occupants() >= 0).nonzero()[0].tolist())
        assert {row for start, n in rows for row in range(start, start + n)} == live


def test_a_small_ring_shows_its_tokens(page: Page) -> None:
    shown = view(page, 1)

    def tokens(line: str) -> list[str]:
        return shown.locator(f"[data-line={line}] svg text").all_text_contents()

    ring = mv.Ring(8)
    ring.append_batch(0, 6)
    before = ring.occupants().tolist()
    ring.append_batch(6, 4)
    assert tokens("ring") == [str(token) for token in ring.occupants()] == ["8", "9", *map(str, range(2, 8))]
    assert tokens("before") == [str(token) for token in range(6)]
    assert tokens("chunk") == ["6", "7", "8", "9"]
    assert tokens("after") == [str(token) for token in range(2, 10)]
    assert tokens("sees") == [str(token) for token in range(7)]
    assert shown.locator("[data-line=sees] .mv-staging-token-gone").all_text_contents() == ["0", "1"]
    shown.focus()
    page.keyboard.press("s")
    assert tokens("ring") == ["·" if token < 0 else str(token) for token in before]
    assert tokens("staged") == [str(token) for token in range(10)]
    assert shown.locator("[data-line=sees] .mv-staging-token-gone").count() == 0
    assert view(page, 2).get_attribute("data-staged") == "yes"  # each display of it


@pytest.mark.parametrize(
    ("name", "typed", "said"),
    [
        ("position", "-1", "position is -1; give a whole number from 0 to 4,294,966,784"),
        ("chunk", "0", "chunk is 0; give a whole number from 1 to 65,536"),
        ("window", "", "window is no number; give a whole number from 1 to 65,536"),
        ("chunk", "1.5", "chunk is 1.5; give a whole number"),
    ],
)
def test_what_cannot_be_is_said_and_changes_nothing(page: Page, name: str, typed: str, said: str) -> None:
    shown = view(page)
    type_in(shown, name, typed)
    expect(shown.get_by_role("alert")).to_contain_text(said)
    check_shows(shown, 2048, 512, 2048, 0)


def test_a_shorter_chunk_has_no_query_past_its_end(page: Page) -> None:
    shown = view(page)
    shown.focus()
    page.keyboard.press("End")
    type_in(shown, "chunk", 4)
    check_shows(shown, 2048, 4, 2048, 3)


def test_a_click_on_the_curve_picks_a_query(page: Page) -> None:
    shown = view(page)
    curve = shown.get_by_role(
        "img", name=re.compile("Rows lost by query: 511 by query 2,048, 0 by query 2,559")
    )
    box = curve.bounding_box()
    assert box is not None
    curve.click(position={"x": box["width"] - 2, "y": box["height"] / 2})
    check_shows(shown, 2048, 512, 2048, 511)


def test_the_accessibility_tree(page: Page) -> None:
    group = page.get_by_role(
        "group", name="A chunk over a ring: what its queries have lost, and what is staged"
    ).first
    check_there(group, "slider", "position", "chunk", "window", "query")
    expect(group.get_by_role("group", name="order")).to_be_visible()
    expect(group.get_by_role("slider", name="query")).to_have_attribute("aria-valuetext", "query 2,048")


def test_full_screen_and_theme(page: Page) -> None:
    check_full_and_on(page, "End", "s")
    check_theme(page, view(page), "(v) => getComputedStyle(v.querySelector('.mv-staging-lost-line')).stroke")


@pytest.mark.parametrize("width", [420, 900, 1_050, 1_290])
def test_all_is_in_its_place_at_any_width(page: Page, width: int) -> None:
    check_width(page, width, ".mv-staging-setting")
