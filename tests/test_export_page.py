"""The exported pages in Chromium, from files, with the network off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lab as jupyter
import nbformat
import pytest
from page_checks import check_width, full_screen, resized, says, view
from playwright.sync_api import Browser, Page, expect

import muser_viz as mv
from muser_viz import resources
from muser_viz.export import export_lessons

STEMS = sorted(path.stem for path in resources.folder("notebooks").glob("*.ipynb"))
TRACE = "mv.RingTrace.run(8, [0, 1, 2, 9, 3, 14, 15], [None, None, None, None, 11, None, None])"
MIXED = mv.RingTrace.run(8, [0, 1, 2, 9, 3, 14, 15], [None, None, None, None, 11, None, None])
HOSTILE = (
    "<script>window.hit = 1</script><img src=x onerror='window.hit = 1'><img src='https://example.org/a.png'>"
)


@pytest.fixture(scope="module")
def running() -> Iterator[Browser]:
    if jupyter.chromium() is None:
        pytest.skip("no Chromium here; on Debian: apt-get install chromium")
    with jupyter.browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def small(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a few views and of hostile text; ``site``: to be made before the browser runs."""
    assert site.is_dir()
    folder = tmp_path_factory.mktemp("small")
    cells = [
        nbformat.v4.new_markdown_cell(f"# Small\n\n{HOSTILE}"),
        nbformat.v4.new_code_cell(f"import muser_viz as mv\nplayer = mv.RingPlayer({TRACE})\nplayer"),
        nbformat.v4.new_code_cell("player"),
        nbformat.v4.new_code_cell("mv.RingPlayer(mv.KvPlane(8, 1, 8))"),
        nbformat.v4.new_code_cell('mv.predict("first wrap")'),
        nbformat.v4.new_code_cell('mv.predict("an early token")'),
        nbformat.v4.new_code_cell('mv.exercise("live sources").check((1, "<b>2</b>"))'),
        nbformat.v4.new_code_cell(f"from IPython.display import HTML\nHTML({HOSTILE!r})"),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "small.ipynb")
    return export_lessons(folder / "site", [folder / "small.ipynb"])[0]


@contextmanager
def offline(running: Browser, path: Path, **context: Any) -> Iterator[Page]:
    """A page opened from its file, offline; it may ask for nothing but itself and report no error."""
    one = running.new_context(offline=True, viewport={"width": 1000, "height": 900}, **context)
    page = one.new_page()
    heard = jupyter.listened(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    if context.get("java_script_enabled", True):
        page.wait_for_function(
            "document.documentElement.dataset.views === 'started' || !document.querySelector('[data-model]')"
        )
    yield page
    assert heard == []
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [path.as_uri()]
    one.close()


@pytest.fixture(scope="module")
def opened(running: Browser, small: Path) -> Iterator[Page]:
    with offline(running, small) as page:
        yield page


@pytest.mark.parametrize("stem", [*STEMS, "index"])
def test_every_page_opens_with_its_views_and_no_error(running: Browser, site: Path, stem: str) -> None:
    with offline(running, site / f"{stem}.html") as page:
        places = page.locator("[data-model]")
        assert page.locator(".mv").count() == places.count()
        assert page.get_by_text("This view did not start").count() == 0
        assert stem == "index" or places.count() > 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_ring_is_stepped_by_click_and_key(page: Page) -> None:
    shown = view(page, 0)
    shown.get_by_role("button", name="Step").click()
    assert says(shown) == MIXED.sentence(0)
    for step, key in enumerate(["ArrowRight", "PageDown", "ArrowRight", "ArrowRight"], start=1):
        page.keyboard.press(key)
        assert says(shown) == MIXED.sentence(step)
    page.keyboard.press("ArrowLeft")
    assert says(shown) == MIXED.sentence(3)
    assert says(view(page, 1)) == MIXED.sentence(3)  # another display of the same player


def test_a_step_that_needs_a_kernel_says_so(page: Page) -> None:
    shown = view(page, 2)
    for _ in range(2):
        shown.get_by_role("button", name="Step").click()
        expect(shown.get_by_role("alert")).to_contain_text(
            "This page has no kernel: open the lesson in JupyterLab"
        )


def test_a_prediction_is_graded(page: Page) -> None:
    number, choice = view(page, 3), view(page, 4)
    number.get_by_role("textbox").fill("2,048")
    number.get_by_role("textbox").press("Enter")
    assert says(number) == mv.predict("first wrap").check("2,048")
    number.get_by_role("textbox").fill("two")
    number.get_by_role("button", name="Check").click()
    expect(number.get_by_role("alert")).to_contain_text("type a whole number")
    wanted = mv.predict("an early token")
    choice.get_by_role("radio", name=str(wanted.question.answer)).check()
    choice.get_by_role("button", name="Check").click()
    assert says(choice) == wanted.check(wanted.question.answer)


def test_an_exercise_shows_its_solution(page: Page) -> None:
    shown = view(page, 5)
    assert "<b>2</b>" in says(shown)
    shown.get_by_text("Show a solution").click()
    expect(shown.locator("pre")).to_contain_text("answer = (952, 2048)")


def test_a_view_fills_the_screen_and_comes_back(page: Page) -> None:
    with full_screen(page, view(page, 0)):
        expect(page.locator(".mv.mv-full")).to_have_count(1)


def test_hostile_text_is_text(page: Page) -> None:
    assert page.evaluate("window.hit") is None
    assert page.get_by_text("window.hit = 1", exact=False).count() >= 2
    assert page.locator("main img:not([src^='data:'])[src]").count() == 0


def test_no_script_but_the_page_s_own_can_run(running: Browser, small: Path, tmp_path: Path) -> None:
    text = small.read_text(encoding="utf-8").replace("<main>", "<main><script>window.hit = 1</script>")
    broken = tmp_path / "broken.html"
    broken.write_text(text, encoding="utf-8")
    one = running.new_context(offline=True)
    page = one.new_page()
    heard = jupyter.listened(page)
    page.goto(broken.as_uri())
    page.wait_for_function("document.documentElement.dataset.views === 'started'")
    assert page.evaluate("window.hit") is None
    assert any("Content Security Policy" in said for said in heard)
    one.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colour_scheme_is_followed_live(page: Page, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme)
    page.wait_for_timeout(100)
    for element in ("body", ".mv"):
        paper = page.locator(element).first.evaluate("(e) => getComputedStyle(e).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    page.emulate_media(color_scheme="light")


def test_a_narrow_screen_shows_all(page: Page) -> None:
    with resized(page, 420, 800):
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    check_width(page)


def test_without_scripts_pictures_and_text_remain(running: Browser, small: Path) -> None:
    with offline(running, small, java_script_enabled=False) as page:
        pictures = page.locator("[data-model] img")
        assert pictures.count() == 3
        for picture in pictures.all():
            assert (picture.bounding_box() or {"width": 0})["width"] > 500
        expect(pictures.first).to_have_attribute("alt", MIXED.sentence(-1))
        question = page.locator("[data-model]").nth(3)
        expect(question).to_contain_text("Which row is it written to?")
        expect(question.get_by_text("at capacity the row is origin_physical")).to_be_hidden()
        question.get_by_text("The answer").click()
        expect(question.get_by_text("at capacity the row is origin_physical")).to_be_visible()
        expect(page.get_by_text("Scripts are off here")).to_be_visible()


def test_from_lesson_to_lesson(running: Browser, site: Path) -> None:
    one = running.new_context(offline=True)
    page = one.new_page()
    page.goto((site / "index.html").as_uri())
    for stem in STEMS:
        link = page.locator("main a").first if stem == STEMS[0] else page.locator("a[rel=next]").first
        link.click()
        assert page.url == (site / f"{stem}.html").as_uri()
    assert page.locator("a[rel=next]").count() == 0
    page.get_by_role("link", name="All lessons").first.click()
    assert page.get_by_role("listitem").count() == len(STEMS)
    one.close()
