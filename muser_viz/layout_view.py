"""Picking an element in a notebook: its row and its place in it go in, both layouts come out (§15.3)."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from muser_viz.checks import whole
from muser_viz.layout import Layout
from muser_viz.layout_picture import draw_layouts
from muser_viz.pictured import PicturedView
from muser_viz.pictures import Picture


class LayoutView(PicturedView):
    """Two sliders, a row and an element, over ``draw_layouts`` of one small plane.

    In a page without widgets it is the picture of the element that is picked; as
    text, its formulas with numbers. InputError for what ``draw_layouts`` refuses.
    """

    STATUS = '<div role="status" style="white-space: pre-wrap">{}</div>'

    def __init__(
        self, physical: int, element: int, capacity: int = 6, n_kv_heads: int = 2, head_dim: int = 4
    ) -> None:
        self.sizes = (capacity, n_kv_heads, head_dim)
        Layout(*self.sizes).offset(physical, element)  # refuses what is no element
        super().__init__()
        self._row = self._slider(physical, capacity, "row")
        self._element = self._slider(element, n_kv_heads * head_dim, "element")
        self.assemble(widgets.HBox([self._row, self._element]))

    def _slider(self, value: int, count: int, name: str) -> Any:
        slider = widgets.IntSlider(value, 0, count - 1, description=name, continuous_update=False)
        slider.observe(self.redraw, names="value")
        return slider

    @property
    def picked(self) -> tuple[int, int]:
        """The row and the element that are shown."""
        return int(self._row.value), int(self._element.value)

    def pick(self, physical: int, element: int) -> None:
        """Show another element; InputError outside the plane."""
        physical = whole("physical", physical, 0, self._row.max)
        element = whole("element", element, 0, self._element.max)
        self._row.value, self._element.value = physical, element

    def picture(self) -> Picture:
        """The element that is picked, in both layouts."""
        return draw_layouts(*self.picked, *self.sizes)
