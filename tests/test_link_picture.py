from __future__ import annotations

import pytest

import muser_viz as mv
from muser_viz.link import Burst, Link
from muser_viz.link_picture import draw_link

TRANSFER = Link(10, 5, 3).send([Burst(0, 25), Burst(20, 40)])


def test_its_text_says_what_it_shows() -> None:
    drawn = draw_link({"one": TRANSFER, "two": Link(10, 50, 3).send([Burst(0, 25)])}, end=20, before=30)
    assert drawn.png.startswith(b"\x89PNG")
    assert drawn.text.splitlines() == [
        "one: 2 wakes, the last byte 7 ticks after the prefill's end",
        "two: 1 wake, the last byte -14 ticks after the prefill's end",
    ]


def test_nothing_to_draw() -> None:
    for nothing in ({}, {"none": Link().send([])}):
        with pytest.raises(mv.InputError, match="nothing sent"):
            draw_link(nothing, 0)
    with pytest.raises(mv.InputError, match=r"^end is -1"):
        draw_link({"one": TRANSFER}, -1)
