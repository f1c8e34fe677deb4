from __future__ import annotations

import base64
import functools
import html
from collections.abc import Iterator
from typing import Any

import ipywidgets as widgets
import pytest

import muser_viz as mv
from muser_viz import player as module
from muser_viz.pictures import Picture
from muser_viz.ring import Ring

TRACE = mv.RingTrace.run(4, [0, 1, 9, 2], [None, None, None, 7])
VIEW = "application/vnd.jupyter.widget-view+json"
drawn_once = functools.cache(mv.draw_ring)


def parts(widget: Any, kind: type) -> Iterator[Any]:
    if isinstance(widget, kind):
        yield widget
    for child in getattr(widget, "children", ()):
        yield from parts(child, kind)


def one(widget: Any, kind: type) -> Any:
    (found,) = parts(widget, kind)
    return found


def click(widget: Any, name: str) -> None:
    (button,) = (button for button in parts(widget, widgets.Button) if button.description == name)
    button.click()


def said(player: mv.RingPlayer) -> str:
    return html.unescape(one(player, widgets.HTML).value)


def check_shows(player: mv.RingPlayer, step: int) -> None:
    """The slider, the picture and the words are those of one step."""
    picture = drawn_once(player.trace, step)
    assert player.step == one(player, widgets.IntSlider).value == step
    assert one(player, widgets.Image).value == picture.png
    assert said(player) == f'<div role="status">{player.trace.sentence(step)}</div>'


def broken(_: Any = None) -> Picture:
    raise RuntimeError("<b>5 & 6</b>")


@pytest.fixture(autouse=True)
def _drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of the time: each step of a trace is drawn once."""
    monkeypatch.setattr(module, "draw_ring", drawn_once)


@pytest.fixture
def player() -> mv.RingPlayer:
    return mv.RingPlayer(TRACE)


def test_it_starts_before_the_first_step(player: mv.RingPlayer) -> None:
    check_shows(player, -1)


def test_it_starts_where_asked() -> None:
    check_shows(mv.RingPlayer(TRACE, 3), 3)


def test_buttons_step_on_and_back(player: mv.RingPlayer) -> None:
    for step in (0, 1, 2):
        click(player, "Step")
        check_shows(player, step)
    click(player, "Back")
    check_shows(player, 1)


def test_buttons_stop_at_the_ends(player: mv.RingPlayer) -> None:
    click(player, "Back")
    check_shows(player, -1)
    player.show(3)
    click(player, "Step")
    check_shows(player, 3)


def test_the_slider_jumps(player: mv.RingPlayer) -> None:
    slider = one(player, widgets.IntSlider)
    assert (slider.min, slider.max) == (-1, 3)
    slider.value = 2
    check_shows(player, 2)
    click(player, "Step")
    check_shows(player, 3)


def test_play_runs_over_the_same_steps(player: mv.RingPlayer) -> None:
    play = one(player, widgets.Play)
    assert (play.min, play.max, play.value) == (-1, 3, -1)


@pytest.mark.parametrize("step", range(-1, 4))
def test_show(player: mv.RingPlayer, step: int) -> None:
    player.show(step)
    check_shows(player, step)


@pytest.mark.parametrize("step", [-2, 4, 1.0, True, "1", None])
def test_steps_out_of_range_are_refused_and_change_nothing(player: mv.RingPlayer, step: Any) -> None:
    player.show(1)
    with pytest.raises(mv.InputError, match=r"^step is .*from -1 to 3$"):
        player.show(step)
    check_shows(player, 1)
    with pytest.raises(mv.InputError, match=r"^step is .*from -1 to 3$"):
        mv.RingPlayer(player.trace, step)


def test_an_empty_trace_has_only_its_start() -> None:
    player = mv.RingPlayer(mv.RingTrace.appends(4, 0))
    for name in ("Step", "Back"):
        click(player, name)
        check_shows(player, -1)
    with pytest.raises(mv.InputError, match="from -1 to -1"):
        player.show(0)


def test_three_forms(player: mv.RingPlayer) -> None:
    for step in (-1, 2, 3):
        player.show(step)
        data, about = player._repr_mimebundle_()
        assert data[VIEW]["model_id"] == player.model_id
        assert data["text/plain"] == player.trace.sentence(step)
        assert base64.b64decode(data["image/png"]) == drawn_once(player.trace, step).png
        assert about["image/png"] == {"alt": player.trace.sentence(step)}


def test_the_words_are_escaped(player: mv.RingPlayer) -> None:
    player.show(0)
    assert "append 0 -&gt; row 0" in one(player, widgets.HTML).value


def check_error_shown(player: mv.RingPlayer) -> None:
    value = one(player, widgets.HTML).value
    assert "RuntimeError: &lt;b&gt;5 &amp; 6&lt;/b&gt;" in value
    assert 'role="alert"' in value
    assert "<b>5" not in value


@pytest.mark.parametrize("name", ["Step", "Back"])
def test_an_error_in_a_button_is_shown(
    name: str, player: mv.RingPlayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    player.show(1)
    with monkeypatch.context() as patched:
        patched.setattr(player, "picture", broken)
        click(player, name)
        check_error_shown(player)
    click(player, name)
    check_shows(player, 3 if name == "Step" else -1)


def test_an_error_under_the_slider_is_shown(player: mv.RingPlayer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player, "picture", broken)
    one(player, widgets.IntSlider).value = 2
    check_error_shown(player)


def test_an_error_before_the_slider_moves_is_shown(
    player: mv.RingPlayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(player, "show", broken)
    click(player, "Step")
    check_error_shown(player)


def test_players_of_one_trace_are_apart() -> None:
    start = Ring(4, len=4, origin_logical=9, origin_physical=2)
    trace = mv.RingTrace.appends(start, 3)
    first, second = mv.RingPlayer(trace), mv.RingPlayer(trace)
    click(first, "Step")
    check_shows(first, 0)
    check_shows(second, -1)
    assert start == Ring(4, len=4, origin_logical=9, origin_physical=2)
