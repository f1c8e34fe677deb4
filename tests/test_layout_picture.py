from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import muser_viz as mv
from muser_viz import layout_picture, pictures
from muser_viz.layout import Layout

WITHOUT_PYPLOT = """
import sys
import muser_viz as mv
mv.draw_layouts(3, 6)
assert "matplotlib.pyplot" not in sys.modules
"""


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Figure]]:
    seen: list[Figure] = []
    canvas = pictures.FigureCanvasAgg

    def kept(figure: Figure) -> Any:
        seen.append(figure)
        return canvas(figure)

    monkeypatch.setattr(pictures, "FigureCanvasAgg", kept)
    yield seen
    seen.clear()


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def test_it_is_a_picture_and_says_the_same() -> None:
    picture = mv.draw_layouts(3, 6)
    assert picture.png.startswith(b"\x89PNG\r\n\x1a\n")
    assert repr(picture) == picture.text
    data, about = picture._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]) == picture.png
    assert about["image/png"]["alt"] == picture.text
    assert picture.text.splitlines() == [
        "6 rows of 2 KV heads x 4; row 3, element 6: KV head 1, dim 2 (E); all rows of KV head 1 (hatched)",
        "token-major: physical * kv_dim + element",
        "  3 * 8 + 6 = 24 + 6 = 30",
        "  KV head 1 is 6 spans: 4 to 7, 12 to 15, 20 to 23, 28 to 31, 36 to 39, 44 to 47",
        "head-major: (kv_head * capacity + physical) * head_dim + dim",
        "  (1 * 6 + 3) * 4 + 2 = 36 + 2 = 38",
        "  KV head 1 is 1 span: 24 to 47",
    ]


def test_the_picture_has_the_formulas_and_every_offset(drawn: list[Figure]) -> None:
    mv.draw_layouts(3, 6)
    said = words(drawn[-1])
    assert {"3 * 8 + 6 = 24 + 6 = 30", "(1 * 6 + 3) * 4 + 2 = 36 + 2 = 38"} <= set(said)
    assert {"E 30", "E 38", "token-major: 6 x 8", "head-major: 2 x 6 x 4"} <= set(said)
    assert said.count("E") == 2
    for offset in set(range(48)) - {30, 38}:
        assert said.count(str(offset)) >= 2
    hatched = [patch for patch in drawn[-1].findobj(layout_picture.Rectangle) if patch.get_hatch()]
    assert len(hatched) == 2 * 2 * 24


@pytest.mark.parametrize("sizes", [(5, 2, 3), (3, 4, 2), (2, 1, 5), (1, 2, 3), (4, 3, 1)])
def test_formulas_are_those_of_the_layout(sizes: tuple[int, int, int]) -> None:
    token, head = Layout(*sizes), Layout(*sizes, head_major=True)
    for physical, element in product(range(sizes[0]), range(token.kv_dim)):
        for layout, steps in zip(
            (token, head), layout_picture._formulas(token, physical, element).values(), strict=True
        ):
            parts = steps.split(" = ")
            assert [eval(part) for part in parts] == [layout.offset(physical, element)] * 3


@pytest.mark.parametrize("head_major", [False, True])
@pytest.mark.parametrize("sizes", [(5, 2, 3), (3, 4, 2), (2, 1, 5), (1, 2, 3)])
def test_spans_are_a_heads_offsets_and_as_few_as_can_be(
    sizes: tuple[int, int, int], head_major: bool
) -> None:
    layout = Layout(*sizes, head_major)
    for kv_head in range(layout.n_kv_heads):
        elements = range(kv_head * layout.head_dim, (kv_head + 1) * layout.head_dim)
        wanted = sorted(layout.offset(*at) for at in product(range(layout.capacity), elements))
        runs = layout_picture._runs(layout, kv_head)
        assert [first + i for first, size in runs for i in range(size)] == wanted
        assert len(runs) == 1 + sum(b - a != 1 for a, b in pairwise(wanted))


@pytest.mark.parametrize("sizes", [(1, 1, 1), (8, 4, 3), (8, 1, 12)])
def test_extremes_are_drawn(sizes: tuple[int, int, int]) -> None:
    picture = mv.draw_layouts(sizes[0] - 1, sizes[1] * sizes[2] - 1, *sizes)
    assert f"= {sizes[0] * sizes[1] * sizes[2] - 1}\n" in picture.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((6, 0), "physical is 6; give a whole number from 0 to 5"),
        ((0, 8), "element is 8; give a whole number from 0 to 7"),
        ((-1, 0), "physical is -1; give a whole number from 0 to 5"),
        ((0, 1.5), "element is 1.5; give a whole number from 0 to 7"),
        ((0, 0, 9), "capacity is 9; give a whole number from 1 to 8"),
        ((0, 0, 6, 2, 7), "a row has 14 elements; at most 12 can be drawn"),
        ((0, 0, 6, 0), "n_kv_heads is 0; give a whole number from 1"),
    ],
)
def test_what_cannot_be_drawn(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(mv.InputError, match="^" + re.escape(said)):
        mv.draw_layouts(*arguments)


def test_pyplot_is_not_loaded() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_PYPLOT], check=True)
