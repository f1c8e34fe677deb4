from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

import muser_viz as mv
from muser_viz.layout import Layout

VIEW = "application/vnd.jupyter.widget-view+json"
SIZES = (3, 2, 2)


@pytest.fixture
def view() -> mv.LayoutView:
    return mv.LayoutView(1, 3, *SIZES)


def test_it_starts_where_asked(view: mv.LayoutView) -> None:
    assert view.picked == (view.row, view.element) == (1, 3)
    assert view.sizes == {"capacity": 3, "n_kv_heads": 2, "head_dim": 2}
    assert view.began.items() >= {"row": 1, "element": 3, "walk": "token-major"}.items()


@pytest.mark.parametrize("sizes", [SIZES, (6, 2, 4), (8, 3, 4), (1, 1, 1)])
def test_the_offsets_are_the_layouts_own(sizes: tuple[int, int, int]) -> None:
    view = mv.LayoutView(0, 0, *sizes)
    offsets = np.frombuffer(view.offsets, "<u4").reshape(2, sizes[0], sizes[1] * sizes[2])
    for of_layout, head_major in zip(offsets, (False, True), strict=True):
        layout = Layout(*sizes, head_major)
        rows = range(layout.capacity)
        assert of_layout.tolist() == [[layout.offset(row, at) for at in range(layout.kv_dim)] for row in rows]


def test_what_is_sent_is_small() -> None:
    view = mv.LayoutView(0, 0, 8, 3, 4)
    assert len(view.offsets) + len(view._esm) + len(view._css) <= 64_000


def test_pick(view: mv.LayoutView) -> None:
    view.pick(0, 2)
    assert view.picked == (0, 2)
    assert view.picture().text == mv.draw_layouts(0, 2, *SIZES).text


@pytest.mark.parametrize("wrong", [(3, 0), (-1, 0), (0, 4), (0, 1.0), (True, 0)])
def test_what_is_outside_is_refused_and_changes_nothing(view: mv.LayoutView, wrong: tuple[Any, Any]) -> None:
    with pytest.raises(mv.InputError, match="give a whole number from 0 to"):
        view.pick(*wrong)
    assert view.picked == (1, 3)
    with pytest.raises(mv.InputError, match="give a whole number from 0 to"):
        mv.LayoutView(*wrong, *SIZES)


def test_a_plane_too_large_to_be_read_is_refused() -> None:
    with pytest.raises(mv.InputError, match="capacity is 9; give a whole number from 1 to 8"):
        mv.LayoutView(0, 0, capacity=9)
    with pytest.raises(mv.InputError, match="a row has 256 elements; at most 12 can be drawn"):
        mv.LayoutView(0, 0, head_dim=128)


def test_three_forms(view: mv.LayoutView) -> None:
    view.pick(2, 1)
    wanted = mv.draw_layouts(2, 1, *SIZES)
    data, about = view._repr_mimebundle_()
    assert data[VIEW]["model_id"] == view.model_id
    assert data["text/plain"] == wanted.text
    assert base64.b64decode(data["image/png"]) == wanted.png
    assert about["image/png"] == {"alt": wanted.text}
