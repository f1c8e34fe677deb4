from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import lab as jupyter
import numpy as np
import pytest
from matplotlib.image import imread, imsave
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

START = "import muser_viz as mv\n"
RING = START + "ring = mv.Ring(2048)\nring.append_batch(0, 2040)\ntrace = mv.RingTrace.appends(ring, 4096)\n"
LONG = RING + "player = mv.RingPlayer(trace)\nplayer"
RUN = "[0, 1, 2, 9, 3, 14, 15], [None, None, None, None, 11, None, None]"
MIXED = f"mv.RingPlayer(mv.RingTrace.run(8, {RUN}))"
LIVE = "plane = mv.KvPlane(8, 1, 8)\nmv.RingPlayer(plane)"
REFERENCES = Path(__file__).parent / "references"


def long_trace() -> mv.RingTrace:
    ring = mv.Ring(2048)
    ring.append_batch(0, 2040)
    return mv.RingTrace.appends(ring, 4096)


MIXED_TRACE = mv.RingTrace.run(8, [0, 1, 2, 9, 3, 14, 15], [None, None, None, None, 11, None, None])


opened = notebook("rings.ipynb", LONG, MIXED, LIVE, "player", views=4)


def step_of(shown: Locator) -> int:
    return number(shown, "step")


def test_buttons_keys_and_the_slider_step(page: Page) -> None:
    shown = view(page, 0)
    shown.get_by_role("button", name="Step").click()
    assert step_of(shown) == 0
    check_keys(
        page,
        lambda: step_of(shown),
        ("ArrowRight", 1),
        ("PageDown", 2),
        ("ArrowLeft", 1),
        ("PageUp", 0),
        ("End", 4095),
        ("Home", -1),
        ("ArrowDown", 7),
        ("PageDown", 8),
        ("w", 2055),
        ("ArrowUp", 7),
    )
    shown.get_by_role("slider", name="step").fill("2055")
    assert says(shown) == long_trace().sentence(2055)
    shown.get_by_role("button", name="Back").click()
    assert step_of(shown) == 2054


@pytest.mark.parametrize("step", range(-1, 7))
def test_the_sentence_is_the_package_s_own(page: Page, step: int) -> None:
    shown = view(page, 1)
    shown.focus()
    for _ in range(step + 1):
        page.keyboard.press("ArrowRight")
    assert says(shown) == MIXED_TRACE.sentence(step)
    tokens = shown.locator("svg .mv-ring-token").all_text_contents()
    wanted = MIXED_TRACE.ring(step).occupants().tolist()
    assert tokens == ["·" if token < 0 else str(token) for token in wanted]


def test_the_slots_are_those_of_the_trace_at_any_step(page: Page) -> None:
    shown, trace = view(page, 0), long_trace()
    for step in (-1, 7, 8, 1000, 2055, 2056, 4095):
        shown.get_by_role("slider", name="step").fill(str(step))
        assert says(shown) == trace.sentence(step)
        rows = shown.locator(".mv-ring-rows tr").all_inner_texts()
        occupants = trace.ring(step).occupants()
        for row in rows:
            at, token = re.match(r"row ([\d,]+)\s+(?:token ([\d,]+)|empty)", row).groups()  # type: ignore[union-attr]
            held = occupants[int(at.replace(",", ""))]
            assert held == (-1 if token is None else int(token.replace(",", "")))


def test_a_refusal_shows_as_a_refusal_and_a_wrap_as_a_wrap(page: Page) -> None:
    shown = view(page, 1)
    shown.get_by_role("slider", name="step").fill("3")
    assert shown.get_attribute("data-refused") == "yes"
    assert shown.locator(".mv-ring-did").inner_text() == "✕ append 9: refused, 3 is next"
    shown.get_by_role("slider", name="step").fill("4")
    assert shown.get_attribute("data-refused") == "no"
    assert "source rows 0 to 2 left the window, 3 to 10 are live" in shown.inner_text()
    shown.get_by_role("slider", name="step").fill("6")
    assert shown.locator(".mv-ring-wrapped").is_hidden()
    shown.get_by_role("slider", name="step").fill("4")
    expect(shown.locator(".mv-ring-wrapped")).to_be_visible()


def test_a_jump_goes_to_a_token_or_says_why_not(page: Page) -> None:
    shown = view(page, 0)
    field = shown.get_by_role("spinbutton", name="token")
    field.press_sequentially("4096")
    field.press("Enter")
    assert says(shown) == long_trace().sentence(2056)
    type_in(shown, "token", 17)
    assert step_of(shown) == 2056
    expect(shown.get_by_role("alert")).to_have_text(
        "token 17 was asked for; this trace stores tokens 2,040 to 6,135"
    )


def test_play_plays_and_stops(page: Page) -> None:
    shown = view(page, 0)
    shown.get_by_role("combobox", name="speed").select_option("240")
    shown.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('.mv').dataset.step > 30")
    shown.get_by_role("button", name="Pause").click()
    stopped = step_of(shown)
    page.wait_for_timeout(150)
    assert step_of(shown) == stopped
    assert says(shown) == long_trace().sentence(stopped)


def test_every_display_of_one_player_is_at_the_same_step(page: Page) -> None:
    view(page, 0).focus()
    page.keyboard.press("End")
    assert step_of(view(page, 3)) == 4095
    page.evaluate("jupyterapp.shell.currentWidget.content.widgets[3].outputArea.model.clear()")
    page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 3")
    page.evaluate("jupyterapp.commands.execute('notebook:run-cell')")
    page.wait_for_function(
        "document.querySelectorAll('.mv').length === 4 && document.querySelectorAll('.mv')[3].dataset.step"
    )
    assert step_of(view(page, 3)) == 4095


def test_no_label_covers_another(page: Page) -> None:
    overlap = """(view) => {
      const boxes = [...view.querySelectorAll('.mv-ring-slots svg text')];
      const apart = (p, q) =>
        p.left >= q.right || q.left >= p.right || p.top >= q.bottom || q.top >= p.bottom;
      return boxes.flatMap((a, i) => boxes.slice(i + 1)
        .filter((b) => !apart(a.getBoundingClientRect(), b.getBoundingClientRect()))
        .map((b) => `${a.textContent} over ${b.textContent}`));
    }"""
    for index, steps in ((0, [*range(14), 519, 520, 1031, 1032, *range(2050, 2060)]), (1, range(-1, 7))):
        shown = view(page, index)
        for _ in range(2):  # as a ring, and as a grid
            for step in steps:
                shown.get_by_role("slider", name="step").fill(str(step))
                assert shown.evaluate(overlap) == [], (index, step, shown.get_attribute("data-mode"))
            shown.focus()
            page.keyboard.press("g")


def test_a_live_plane_shows_the_bytes_that_landed(page: Page) -> None:
    shown = view(page, 2)
    first = step_of(shown)
    for i in range(12):
        shown.get_by_role("button", name="Step").click()
        page.wait_for_function(f"document.querySelectorAll('.mv')[2].dataset.step == {first + i + 1}")
    position = first + 12
    key, value = mv.seeded(position, 2, 8).astype(np.float16)
    text = shown.locator(".mv-ring-bytes").inner_text()
    for letter, words in (("K", key), ("V", value)):
        assert f"{letter} {' '.join(f'{word:04x}' for word in words.view(np.uint16)[:6])}" in text
    assert f"row {position % 8}" in text


def test_many_clicks_at_once_leave_no_backlog(page: Page) -> None:
    shown = view(page, 2)
    shown.focus()
    page.keyboard.press("End")
    before = step_of(shown)
    shown.evaluate("(v) => { for (let i = 0; i < 200; i++) v.querySelector('button.mv-step').click(); }")
    page.wait_for_function("!document.querySelectorAll('.mv')[2].dataset.asked")
    page.wait_for_timeout(300)
    assert before + 1 <= step_of(shown) <= before + 3


def test_stepping_sends_nothing_to_the_kernel(pages: jupyter.Pages) -> None:
    context = pages.running.new_context()
    page = context.new_page()
    sent: list[Any] = []

    def keep(frame: Any) -> None:
        sent.append(frame)

    page.on("websocket", lambda socket: socket.on("framesent", keep))
    pages.lab.open(page, pages.lab.write("quiet.ipynb", LONG))
    pages.lab.run(page)
    page.wait_for_selector(".mv[data-step]")
    page.wait_for_timeout(500)
    sent.clear()
    page.locator(".mv").focus()
    for key in ["PageDown"] * 20 + ["g", "Space"]:
        page.keyboard.press(key)
    page.wait_for_timeout(500)
    assert sent == []
    context.close()


def test_full_screen_and_its_keys(page: Page) -> None:
    shown = view(page, 1)
    with full_screen(page, shown):
        page.keyboard.press("PageDown")
        assert step_of(shown) == 0
        page.keyboard.press("b")
        assert shown.evaluate("(v) => getComputedStyle(v.firstChild).visibility") == "hidden"
        page.keyboard.press("b")
        page.keyboard.press("End")
        page.keyboard.press("PageDown")  # nothing is left here: on to the next view
        expect(view(page, 2)).to_have_class(re.compile("mv-full"))


def test_help_lists_the_keys(page: Page) -> None:
    shown = view(page, 0)
    shown.focus()
    page.keyboard.press("?")
    keys = shown.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("full screen, and back")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    assert shown.evaluate("(v) => document.activeElement === v")


def test_the_accessibility_tree(page: Page) -> None:
    group = page.get_by_role("group", name="A ring of 2,048 rows, step by step").first
    group.focus()
    page.keyboard.press("PageDown")
    expect(group.get_by_role("img")).to_have_attribute(
        "aria-label",
        "2,048 rows by age. append 2,040 -> row 2,040; len 2,041, origin_logical 0, origin_physical 0",
    )
    expect(group.locator(".mv-heard[role=status]")).to_have_text(long_trace().sentence(0))
    check_there(group, "button", "Back", "Step", "Play", "Full screen")
    check_there(group, "slider", "step")
    check_there(group, "combobox", "speed")
    check_there(group, "spinbutton", "token")


def test_the_theme_is_followed(page: Page) -> None:
    # the canvas: empty rows follow it too
    check_theme(page, view(page, 0), "(v) => getComputedStyle(v).backgroundColor", CANVAS)


def test_reduced_motion_plays_two_steps_a_second_at_most(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    shown = view(page, 0)
    shown.get_by_role("combobox", name="speed").select_option("240")
    shown.get_by_role("button", name="Play").click()
    page.wait_for_timeout(1100)
    shown.get_by_role("button", name="Pause").click()
    page.emulate_media(reduced_motion="no-preference")
    assert -1 <= step_of(shown) <= 2


def test_a_narrow_screen_shows_all(page: Page) -> None:
    check_width(page)


def pixels(shown: Locator) -> Any:
    url = shown.evaluate(CANVAS)
    return (imread(io.BytesIO(base64.b64decode(url.split(",")[1]))) * 255).astype(int)


def wrong(drawn: Any, reference: Any) -> int:
    """Pixels of another colour; a slot of 2,048 rows has 10 or more."""
    return int((np.abs(drawn - reference).max(axis=2) > 12).sum())


@pytest.mark.parametrize("mode", ["ring", "grid"])
def test_the_slots_are_drawn_as_the_reference(pages: jupyter.Pages, mode: str) -> None:
    page, heard = pages.open(f"reference-{mode}.ipynb", RING + f"mv.RingPlayer(trace, 8, {mode!r})")
    shown = view(page, 0)
    shown.locator(".mv-ring-slots").evaluate("(e) => { e.style.flex = 'none'; e.style.width = '360px'; }")
    shown.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    drawn = pixels(shown)
    stored = REFERENCES / f"ring-{mode}.png"
    if not stored.exists():
        imsave(stored, drawn.astype(np.uint8))
        pytest.fail(f"{stored} was not there: look at what was drawn into it, and run again")
    reference = (imread(stored) * 255).astype(int)
    assert drawn.shape == reference.shape
    assert wrong(drawn, reference) <= 4, f"compare with {stored}"
    assert wrong(one_slot_wrong(drawn, mode), reference) > 4
    assert heard == []
    page.context.close()


def one_slot_wrong(drawn: Any, mode: str) -> Any:
    """The picture with one slot, in the middle of the live rows, of the newest token's colour."""
    painted = drawn.copy()
    height, width = painted.shape[:2]
    if mode == "grid":
        side = width / (44 + 64 * 10 + 8)
        x, y = int((44 + 30 * 10 + 1) * side), int((26 + 15 * 10 + 1) * side)
        painted[y : y + int(8 * side), x : x + int(8 * side)] = painted[0, 0]
        return painted
    y, x = np.mgrid[0:height, 0:width] + 0.5
    radius = np.hypot(x - width / 2, y - height / 2) / (width / 2)
    turn = np.mod(np.arctan2(x - width / 2, height / 2 - y) / (2 * np.pi), 1) * 2048
    painted[(radius > 0.55) & (radius < 0.8) & (turn >= 1000) & (turn < 1001)] = [253, 231, 37, 255]
    return painted


def test_a_restarted_kernel_is_said_and_a_run_revives(pages: jupyter.Pages) -> None:
    page, heard = pages.open("restart.ipynb", LONG, START + LIVE, views=2)
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    for index in range(2):
        expect(view(page, index).get_by_role("alert")).to_contain_text("The kernel has gone", timeout=20_000)
    shown = view(page, 0)
    shown.focus()
    page.keyboard.press("PageDown")  # a trace needs no kernel
    assert says(shown) == long_trace().sentence(0)
    view(page, 1).get_by_role("button", name="Step").click()
    expect(view(page, 1).get_by_role("alert")).to_contain_text("Run this cell again")
    pages.lab.run(page)
    page.wait_for_function(
        "document.querySelectorAll('.mv').length === 2 && !document.querySelector('.mv[data-kernel]')",
        timeout=30_000,
    )
    view(page, 1).get_by_role("button", name="Step").click()
    page.wait_for_function("document.querySelectorAll('.mv')[1].dataset.step == 0")
    assert [said for said in heard if "Kernel" not in said] == []
    page.context.close()


def test_twenty_runs_leave_one_live_widget(pages: jupyter.Pages) -> None:
    count = (
        "from ipywidgets.widgets import widget\n"
        "print('live', sum(type(w).__name__ == 'RingPlayer' for w in widget._instances.values()))"
    )
    page, _ = pages.open("reruns.ipynb", LONG, count)
    for _ in range(20):
        page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 0")
        page.evaluate("jupyterapp.commands.execute('notebook:run-cell')")
    pages.lab.run(page)
    page.wait_for_timeout(500)
    assert "live 1" in page.locator(".jp-OutputArea-output pre").last.inner_text()
    assert page.locator(".mv").count() == 1
    page.context.close()
