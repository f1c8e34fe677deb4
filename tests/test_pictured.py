from __future__ import annotations

import ipywidgets as widgets

import muser_viz as mv
from muser_viz.pictured import PicturedView
from muser_viz.pictures import Picture


class Counting(PicturedView):
    def __init__(self) -> None:
        super().__init__()
        self.slider = widgets.IntSlider(0, 0, 9)
        self.slider.observe(self.redraw, names="value")
        self.assemble(self.slider)

    def picture(self) -> Picture:
        if self.slider.value > 2:
            raise ValueError("<past two>")
        return mv.draw_ring(mv.RingTrace.appends(4, 3), self.slider.value)


def test_three_forms_of_the_present_state() -> None:
    view = Counting()
    view.slider.value = 1
    data, metadata = view._repr_mimebundle_()
    assert bytes(view.children[0].value).startswith(b"\x89PNG")
    assert data["text/plain"] == metadata["image/png"]["alt"] == view.picture().text
    assert "append 1 -&gt; row 1" in view.children[1].value
    assert {"image/png", "application/vnd.jupyter.widget-view+json"} <= set(data)


def test_an_error_is_shown_and_the_next_state_too() -> None:
    view = Counting()
    view.slider.value = 3
    assert 'role="alert"' in view.children[1].value
    assert "ValueError: &lt;past two&gt;" in view.children[1].value
    view.slider.value = 2
    assert 'role="status"' in view.children[1].value
