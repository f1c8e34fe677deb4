from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

import muser_viz as mv

VIEW = "application/vnd.jupyter.widget-view+json"


def pair(dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    a = mv.seeded(1, 8, 5).astype(dtype)
    b = a.copy()
    b[2, 3], b[6, 0] = np.nan, 9
    return a, b


@pytest.mark.parametrize(("dtype", "word"), [(np.float16, "<u2"), (np.float32, "<u4")])
def test_words_go_out_as_they_lie(dtype: type, word: str) -> None:
    a, b = pair(dtype)
    view = mv.BitsView(a, b, ("own", "row 0"))
    assert np.frombuffer(view.a, word).tolist() == a.view(word).ravel().tolist()
    assert np.frombuffer(view.b, word).tolist() == b.view(word).ravel().tolist()
    assert (view.width, view.names, view.index) == (8 * a.itemsize, ["own", "row 0"], 13)
    assert view.began["index"] == 13


def test_arrays_are_kept_as_they_were() -> None:
    a, b = pair()
    view = mv.BitsView(a, b)
    text = view.picture().text
    b[:] = a
    assert view.picture().text == text


def test_numbers_and_strided_arrays() -> None:
    assert mv.BitsView(np.float32(1), np.float32(1)).a == np.float32(1).tobytes()
    a, b = pair()
    assert mv.BitsView(a.T, b.T).a == np.ascontiguousarray(a.T).tobytes()


@pytest.mark.parametrize("index", [None, 0, 13, 39])
def test_three_forms(index: int | None) -> None:
    a, b = pair()
    view = mv.BitsView(a, b, ("own", "row 0"), index)
    data, about = view._repr_mimebundle_()
    wanted = mv.draw_bits(a, b, ("own", "row 0"), shown=4, index=13 if index is None else index)
    assert data[VIEW]["model_id"] == view.model_id
    assert data["text/plain"] == wanted.text == about["image/png"]["alt"]
    assert base64.b64decode(data["image/png"]) == wanted.png


def test_show() -> None:
    view = mv.BitsView(*pair())
    view.show(30)
    assert view.index == 30
    assert "word 30: " in view.picture().text


@pytest.mark.parametrize("index", [-1, 40, 1.0, True, "1"])
def test_words_that_are_not_there(index: Any) -> None:
    view = mv.BitsView(*pair())
    for act in (lambda: view.show(index), lambda: mv.BitsView(*pair(), index=index)):
        with pytest.raises(mv.InputError, match=r"^index is .*from 0 to 39$"):
            act()
    assert view.index == 13


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((np.zeros(3, np.float32), np.zeros(4, np.float32)), "two arrays of one dtype and shape"),
        ((np.zeros(3, np.float32), np.zeros(3, np.float16)), "two arrays of one dtype and shape"),
        ((np.zeros(3), np.zeros(3)), "float16 or float32"),
        ((np.zeros(0, np.float32), np.zeros(0, np.float32)), "two empty arrays"),
        ((*pair(), "ab"), "give two texts"),
        ((*pair(), ("a", 1)), "give two texts"),
        ((*pair(), ("a", "b", "c")), "give two texts"),
    ],
)
def test_what_is_no_pair(given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(mv.InputError, match=said):
        mv.BitsView(*given)


def test_the_front_is_small() -> None:
    assert len(mv.BitsView._esm) + len(mv.BitsView._css) <= 48_000
