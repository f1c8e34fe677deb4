from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import muser_viz as mv
from muser_viz import pictures


def test_a_table_has_every_plane() -> None:
    store = mv.KvStore(max_context=100)
    table = mv.plane_table(store)
    assert table["layer"].tolist() == list(range(52))
    assert table["rows"].tolist() == [plane.capacity for plane in store.planes]
    assert int(table["nbytes"].sum()) == store.nbytes
    assert table[3].item() == (3, "full NoPE", "head-major", 100, 102_400)
    assert table[4].item() == (4, "sliding RoPE", "token-major", 100, 102_400)


def test_a_picture_of_all_planes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Figure] = []
    canvas = pictures.FigureCanvasAgg

    def kept(figure: Figure) -> object:
        seen.append(figure)
        return canvas(figure)

    monkeypatch.setattr(pictures, "FigureCanvasAgg", kept)
    geometry = mv.Geometry(n_layers=8, sliding_window=64, context_limit=256)
    picture = mv.draw_planes(mv.plane_table(mv.KvStore(geometry)))
    assert picture.text.splitlines() == [
        "8 planes, 917,504 bytes",
        "sliding RoPE: 6 planes, token-major, 64 rows, 65,536 bytes each, 393,216 in all; layers 0-2, 4-6",
        "full NoPE: 2 planes, head-major, 256 rows, 262,144 bytes each, 524,288 in all; layers 3, 7",
    ]
    assert picture.png.startswith(b"\x89PNG")
    words = [text.get_text() for text in seen[0].findobj(Text)]
    assert "8 planes, 917,504 bytes" in words
    assert "full NoPE: 2 planes, head-major, 256 rows, 262,144 bytes each" in words
    assert len(seen[0].axes[0].patches) == 8


@pytest.mark.parametrize("rows", [np.zeros(3), []])
def test_what_is_no_table(rows: object) -> None:
    with pytest.raises(mv.InputError, match=r"give plane_table\(store\)$"):
        mv.draw_planes(np.asarray(rows))


def test_an_empty_table() -> None:
    with pytest.raises(mv.InputError, match="shape"):
        mv.draw_planes(mv.plane_table(mv.KvStore(max_context=32))[:0])
