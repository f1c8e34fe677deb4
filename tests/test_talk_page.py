"""The talk as a speaker gives it: a clicker's two keys, full screen, from the first view to the last."""

from __future__ import annotations

from collections.abc import Iterator

import lab as jupyter
import pytest
from playwright.sync_api import Page, expect

WHERE = """() => {
  const view = document.fullscreenElement;
  const text = (name) => view.querySelector(name).textContent;
  return view && [[...document.querySelectorAll('.mv')].indexOf(view), text('.mv-says'), text('.mv-alert')];
}"""


@pytest.fixture(scope="module")
def talk(pages: jupyter.Pages) -> Iterator[Page]:
    page = pages.running.new_context(viewport={"width": 1920, "height": 1080}).new_page()
    heard = jupyter.listened(page)
    pages.lab.open(page, "talk.ipynb")
    pages.lab.run(page)
    expect(page.locator(".mv")).to_have_count(9, timeout=30_000)
    page.locator(".mv").first.focus()
    page.keyboard.press("f")
    page.wait_for_function("document.fullscreenElement")
    yield page
    assert heard == []


def go(page: Page, key: str) -> tuple[int, str, str]:
    """Press a key; the view that fills the screen then, what it says, and its message."""
    page.keyboard.press(key)
    page.wait_for_timeout(120)
    index, says, message = page.evaluate(WHERE)
    return index, says, message


def start(page: Page) -> tuple[int, str, str]:
    """Back to the first view as it began."""
    while page.evaluate(WHERE)[0] > 0:
        go(page, "p")
    return go(page, "r")


def test_page_down_goes_through_every_view_and_page_up_back(talk: Page) -> None:
    seen = [start(talk)]
    while not seen[-1][2] and len(seen) < 80:
        seen.append(go(talk, "PageDown"))
    views = [index for index, _, _ in seen]
    assert views == sorted(views)
    assert set(views) == set(range(9))
    said = [says for _, says, _ in seen]
    for part in (
        "append 8 -> row 0; len 8, origin_logical 1, origin_physical 1",
        "append 12: refused, 10 is next",
        "3 of its tokens had left the window",
        "append 2,048 -> row 0; len 2,048, origin_logical 1, origin_physical 1",
        "append 4,096 -> row 0",
        "past the guard, it does nothing",
        "words differ",
        "511 of them are lost",
        "nothing is lost",
    ):
        assert any(part in says for says in said), part
    assert seen[-1] == (*seen[-2][:2], "this is the last view of the page")
    back = [go(talk, "PageUp")[0] for _ in range(12)]
    assert back == sorted(back, reverse=True)
    assert back[-1] < 8


def test_one_key_recovers(talk: Page) -> None:
    began = start(talk)
    for key in ("PageDown", "ArrowRight", "g", " ", "?"):
        talk.keyboard.press(key)
    assert go(talk, "r") == began
    assert go(talk, "n")[0] == 1


def test_the_text_is_readable_from_afar(talk: Page) -> None:
    start(talk)
    for _ in range(9):
        size = talk.evaluate(
            "parseFloat(getComputedStyle(document.fullscreenElement).fontSize) / innerHeight"
        )
        assert size >= 0.025
        assert talk.evaluate(
            "document.fullscreenElement.scrollHeight <= document.fullscreenElement.clientHeight + 1"
        )
        go(talk, "n")
