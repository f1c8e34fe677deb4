from __future__ import annotations

import re
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import muser_viz as mv
from muser_viz import pictures
from muser_viz.threads import StoreLaunch


def launch_of(head_major: bool = False, count: int | None = 3) -> StoreLaunch:
    plane = mv.KvPlane(5, 2, 2, head_major)
    plane.append_batch(0, mv.seeded(1, 4, 4), mv.seeded(2, 4, 4))
    return mv.store_launch(plane, count)


def test_both_layouts_in_one_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    canvas = pictures.FigureCanvasAgg

    def kept(figure: Figure) -> Any:
        drawn.append(figure)
        return canvas(figure)

    monkeypatch.setattr(pictures, "FigureCanvasAgg", kept)
    picture = mv.draw_threads(launch_of(), launch_of(True), past=4)
    assert picture.png.startswith(b"\x89PNG")
    assert picture.text.splitlines() == [
        "token-major, muser_kv_store_batch_f16: 12 threads store, 4 past the guard do nothing",
        "threads 0 to 3: source row 0 -> row 4, cells 16 17 18 19",
        "threads 4 to 7: source row 1 -> row 0, cells 0 1 2 3",
        "threads 8 to 11: source row 2 -> row 1, cells 4 5 6 7",
        "head-major, muser_kv_store_batch_f16: 12 threads store, 4 past the guard do nothing",
        "threads 0 to 3: source row 0 -> row 4, cells 8 9 18 19",
        "threads 4 to 7: source row 1 -> row 0, cells 0 1 10 11",
        "threads 8 to 11: source row 2 -> row 1, cells 2 3 12 13",
    ]
    words = [text.get_text() for text in drawn[0].findobj(Text)]
    assert set(re.findall(r"\d+", " ".join(words))) >= {str(cell) for cell in range(20)}
    assert words.count("past the guard") == 2
    assert {"source row 0", "source row 2", "row 4", "head 0", "head 1"} <= set(words)


def test_one_row() -> None:
    assert mv.draw_threads(launch_of(count=None)).text.splitlines()[1:] == [
        "threads 0 to 3: source row 0 -> row 4, cells 16 17 18 19"
    ]


def test_what_is_not_drawn() -> None:
    with pytest.raises(mv.InputError, match="no launch was given"):
        mv.draw_threads()
    with pytest.raises(mv.InputError, match="2048 threads or cells"):
        mv.draw_threads(mv.store_launch(mv.KvPlane(8)))
    with pytest.raises(mv.InputError, match="stores nothing"):
        mv.draw_threads(launch_of().but(source_count=0))


def test_a_step_shows_what_is_stored_by_then() -> None:
    launches = launch_of(), launch_of(True)
    texts = {
        step: mv.draw_threads(*launches, past=4, step=step).text.splitlines() for step in (-1, 5, 13, 16)
    }
    assert texts[-1] == [
        "start: 16 threads, nothing stored",
        "token-major, muser_kv_store_batch_f16: 12 threads store, 4 past the guard do nothing",
        "head-major, muser_kv_store_batch_f16: 12 threads store, 4 past the guard do nothing",
    ]
    assert texts[5][0] == (
        "thread 5: source row 1, element 1 (source 5) -> row 0, token-major cell 1, head-major cell 1; "
        "6 of 12 elements stored"
    )
    assert texts[5][2:4] == [
        "threads 0 to 3: source row 0 -> row 4, cells 16 17 18 19",
        "threads 4 to 5: source row 1 -> row 0, cells 0 1",
    ]
    assert texts[13][0] == "thread 13: 13 >= 12, past the guard, it does nothing; 12 of 12 elements stored"
    assert texts[16][0] == "all at once: 12 threads store, 4 past the guard do nothing"
    assert texts[13][1:] == texts[16][1:] == mv.draw_threads(*launches, past=4).text.splitlines()


def test_a_step_is_drawn() -> None:
    drawn = {mv.draw_threads(launch_of(), past=4, step=step).png for step in (-1, 0, 5, 11, 12, 15, 16)}
    assert len(drawn) == 7
    assert mv.draw_threads(launch_of(), past=4, step=16).png == mv.draw_threads(launch_of(), past=4).png


def test_a_step_is_of_the_same_threads() -> None:
    with pytest.raises(mv.InputError, match="threads differ in source_row"):
        mv.draw_threads(launch_of(), launch_of(count=2), step=0)
    with pytest.raises(mv.InputError, match="step is 13; give a whole number from -1 to 12"):
        mv.draw_threads(launch_of(), step=13)


def test_a_cell_outside_or_written_twice_is_not_drawn() -> None:
    with pytest.raises(mv.InputError, match="would write cell 23 of 20"):
        mv.draw_threads(launch_of(count=None).but(write_index=5))
    with pytest.raises(mv.InputError, match="two threads would write one cell"):
        mv.draw_threads(launch_of().but(source_count=6))
