from __future__ import annotations

import base64
import html
from typing import Any

import ipywidgets as widgets
import pytest

import muser_viz as mv
from muser_viz import layout_view as module

VIEW = "application/vnd.jupyter.widget-view+json"
SIZES = (3, 2, 2)


def parts(view: mv.LayoutView) -> tuple[Any, Any, Any, Any]:
    """The image, the words, the sliders of row and element."""
    image, says, sliders = view.children
    assert isinstance(image, widgets.Image)
    return image, says, *sliders.children


def check_shows(view: mv.LayoutView, physical: int, element: int) -> None:
    image, says, row, column = parts(view)
    wanted = mv.draw_layouts(physical, element, *SIZES)
    assert view.picked == (row.value, column.value) == (physical, element)
    assert image.value == wanted.png == view.picture().png
    assert wanted.text in html.unescape(says.value)
    assert 'role="status"' in says.value


@pytest.fixture
def view() -> mv.LayoutView:
    return mv.LayoutView(1, 3, *SIZES)


def test_it_starts_where_asked(view: mv.LayoutView) -> None:
    check_shows(view, 1, 3)
    _, _, row, column = parts(view)
    assert (row.min, row.max, column.min, column.max) == (0, 2, 0, 3)


def test_the_sliders_pick(view: mv.LayoutView) -> None:
    _, _, row, column = parts(view)
    row.value = 2
    check_shows(view, 2, 3)
    column.value = 0
    check_shows(view, 2, 0)


def test_pick(view: mv.LayoutView) -> None:
    view.pick(0, 2)
    check_shows(view, 0, 2)


@pytest.mark.parametrize("wrong", [(3, 0), (-1, 0), (0, 4), (0, 1.0), (True, 0)])
def test_what_is_outside_is_refused_and_changes_nothing(view: mv.LayoutView, wrong: tuple[Any, Any]) -> None:
    with pytest.raises(mv.InputError, match="give a whole number from 0 to"):
        view.pick(*wrong)
    check_shows(view, 1, 3)
    with pytest.raises(mv.InputError):
        mv.LayoutView(*wrong, *SIZES)


def test_three_forms(view: mv.LayoutView) -> None:
    view.pick(2, 1)
    wanted = mv.draw_layouts(2, 1, *SIZES)
    data, about = view._repr_mimebundle_()
    assert data[VIEW]["model_id"] == view.model_id
    assert data["text/plain"] == wanted.text
    assert base64.b64decode(data["image/png"]) == wanted.png
    assert about["image/png"] == {"alt": wanted.text}


def test_an_error_is_shown_where_the_reader_looks(
    view: mv.LayoutView, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("<b>5 & 6</b>")

    _, says, row, _ = parts(view)
    with monkeypatch.context() as patched:
        patched.setattr(module, "draw_layouts", broken)
        row.value = 2
        assert "RuntimeError: &lt;b&gt;5 &amp; 6&lt;/b&gt;" in says.value
        assert 'role="alert"' in says.value
    row.value = 0
    check_shows(view, 0, 3)
