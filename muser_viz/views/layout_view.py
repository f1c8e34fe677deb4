"""Picking an element in the browser: its cell in both layouts, and its head's history (§15.3)."""

from __future__ import annotations

import numpy as np
import traitlets

from muser_viz.checks import whole
from muser_viz.layout import Layout
from muser_viz.layout_picture import draw_layouts, refuse_large
from muser_viz.pictures import Picture
from muser_viz.views.view import View, front


class LayoutView(View):
    """One small plane in both layouts, side by side and as memory (§15.3).

    The reader points at a cell, or takes one by a click or the arrow keys, and
    sees the element in both layouts, both index formulas with its numbers, and
    the spans of memory that hold its KV head's rows. Page Down walks memory.

    In a page without widgets it is the picture of the element that is picked; as
    text, its formulas and spans. InputError for what ``draw_layouts`` refuses.
    """

    _esm, _css = front("layout_view")

    sizes = traitlets.Dict().tag(sync=True)
    offsets = traitlets.Bytes(b"").tag(sync=True)
    """Of each layout, token-major first: the offset of each element of each row, ``<u4``."""
    row = traitlets.Int(0).tag(sync=True, state=True)
    element = traitlets.Int(0).tag(sync=True, state=True)
    walk = traitlets.Unicode("token-major").tag(sync=True, state=True)

    def __init__(
        self, physical: int, element: int, capacity: int = 6, n_kv_heads: int = 2, head_dim: int = 4
    ) -> None:
        layouts = [Layout(capacity, n_kv_heads, head_dim, head_major) for head_major in (False, True)]
        self._layout = layouts[0]
        layouts[0].offset(physical, element)  # refuses what is no element
        refuse_large(layouts[0])
        every = [
            [layout.offset(row, at) for row in range(layout.capacity) for at in range(layout.kv_dim)]
            for layout in layouts
        ]
        super().__init__(
            sizes={
                "capacity": layouts[0].capacity,
                "n_kv_heads": layouts[0].n_kv_heads,
                "head_dim": layouts[0].head_dim,
            },
            offsets=np.array(every, "<u4").tobytes(),
            row=physical,
            element=element,
        )

    @property
    def picked(self) -> tuple[int, int]:
        """The row and the element that Python set."""
        return self.row, self.element

    def pick(self, physical: int, element: int) -> None:
        """Show another element; InputError outside the plane."""
        row = whole("physical", physical, 0, self._layout.capacity - 1)
        at = whole("element", element, 0, self._layout.kv_dim - 1)
        self.put(row=row, element=at)

    def picture(self) -> Picture:
        """The element that Python set, in both layouts."""
        layout = self._layout
        return draw_layouts(*self.picked, layout.capacity, layout.n_kv_heads, layout.head_dim)
