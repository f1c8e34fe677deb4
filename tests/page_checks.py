"""What the tests of every view in the browser share: its page, how to use it, and what holds of each view."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import lab as jupyter
import pytest
from playwright.sync_api import Locator, Page, expect

CANVAS = "(v) => v.querySelector('canvas').toDataURL()"
OUTSIDE = """(v, part) => {
  const right = (e) => e.getBoundingClientRect().right;
  const around = (e) => (part && e.parentElement.closest(part)) || v;
  const drawn = [...v.querySelectorAll('*')].filter((e) => e.getClientRects().length);
  return drawn.filter((e) => !e.closest('.mv-heard') && right(e) > right(around(e)) + 1)
    .map((e) => e.outerHTML.slice(0, 200));
}"""


def notebook(name: str, *cells: str, views: int) -> Any:
    """The fixture ``opened`` of a module: a notebook with so many views, and no console error to the end.

    The fixture ``page`` of conftest.py is that page with every view as it began.
    """

    @pytest.fixture(scope="module", name="opened")
    def opened(pages: jupyter.Pages) -> Iterator[Page]:
        page, heard = pages.open(name, *cells, views=views)
        yield page
        assert heard == []

    return opened


def view(page: Page, index: int = 0) -> Locator:
    """The page's view of this index."""
    return page.locator(".mv").nth(index)


def says(shown: Locator) -> str:
    """A view's sentence."""
    return shown.locator(".mv-says").text_content() or ""


def number(shown: Locator, name: str) -> int:
    """A whole number that a view shows as ``data-name``."""
    return int(shown.get_attribute(f"data-{name}") or "none")


def type_in(shown: Locator, name: str, value: int | str) -> None:
    """Type into a view's number field, and Enter."""
    field = shown.get_by_role("spinbutton", name=name)
    field.fill(str(value))
    field.press("Enter")


def check_keys(page: Page, state: Callable[[], object], *told: tuple[str, object]) -> None:
    """Each key, pressed in turn, leads to its state."""
    for at, (key, wanted) in enumerate(told):
        page.keyboard.press(key)
        assert state() == wanted, (at, key)


def check_there(group: Locator, role: Any, *names: str) -> None:
    """Elements of this role and of exactly these names are to be seen."""
    for name in names:
        expect(group.get_by_role(role, name=name, exact=True)).to_be_visible()


def check_theme(page: Page, place: Locator, *drawn: str) -> None:
    """What each function of the place gives changes in the dark theme, and comes back in the light one."""
    light = [place.evaluate(each) for each in drawn]
    jupyter.theme(page, "Dark")
    dark = [place.evaluate(each) for each in drawn]
    jupyter.theme(page, "Light")
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert [place.evaluate(each) for each in drawn] == light


@contextmanager
def resized(page: Page, width: int, height: int) -> Iterator[None]:
    """The page at another size, without JupyterLab's side bar; and back."""
    before = page.viewport_size
    assert before is not None
    page.evaluate("globalThis.jupyterapp?.shell.collapseLeft()")
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(300)
    try:
        yield
    finally:
        page.set_viewport_size(before)
        page.evaluate("globalThis.jupyterapp?.shell.expandLeft()")
        page.wait_for_timeout(300)


def check_width(page: Page, width: int = 420, part: str | None = None) -> None:
    """At this width of screen nothing of any view is right of the view, or of the ``part`` it is in."""
    with resized(page, width, 900):
        outside = []
        for shown in page.locator(".mv").all():
            shown.scroll_into_view_if_needed()  # JupyterLab lays out what is near the screen alone
            outside += shown.evaluate(OUTSIDE, part)
    assert outside == []


@contextmanager
def full_screen(page: Page, shown: Locator, text: str | None = None, whole: bool = True) -> Iterator[None]:
    """A view fills the screen, and no view does afterwards.

    Nothing is right of it, its ``text`` (a selector) is large enough for a hall, and, where it is to be
    there ``whole``, nothing is below the screen.
    """
    shown.focus()
    page.keyboard.press("f")
    expect(shown).to_have_class(re.compile("mv-full"))
    page.wait_for_timeout(200)
    assert shown.evaluate(OUTSIDE) == []
    assert shown.evaluate("(v) => v.scrollWidth <= v.clientWidth + 1")
    assert not whole or shown.evaluate("(v) => v.scrollHeight <= v.clientHeight + 1")
    size = "(e) => parseFloat(getComputedStyle(e).fontSize) / innerHeight"
    assert (shown.locator(text).first if text else shown).evaluate(size) > 0.019
    yield
    page.keyboard.press("f")
    expect(page.locator(".mv.mv-full")).to_have_count(0)


def check_full_and_on(page: Page, *keys: str) -> None:
    """The first view is there whole on a large screen; after ``keys``, its last stop, a clicker goes on."""
    shown = view(page)
    with resized(page, 1920, 1080), full_screen(page, shown):
        pass
    with full_screen(page, shown, whole=False):
        for key in (*keys, "PageDown"):
            page.keyboard.press(key)
        expect(view(page, 1)).to_have_class(re.compile("mv-full"))
