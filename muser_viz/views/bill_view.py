"""The bill with a slider for each of its factors, worked out in the browser (§15.7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import traitlets

from muser_viz.bill_picture import PRECISIONS, Price, draw_bill
from muser_viz.checks import POSITION_LIMIT, whole
from muser_viz.errors import InputError
from muser_viz.geometry import MIN_CAPACITY, MUSE_GLIMMER, Geometry
from muser_viz.pictures import Picture
from muser_viz.views.view import View, front

FACTORS = ("context", "tokens", "slots", "window", "layers", "heads", "precision")


class Bill(View):
    """Every factor of the bill with a slider, every term as its multiplication (§15.7).

    Arguments are those of ``draw_bill``. Page Down goes through the chapter's own
    settings, from one layer and one token to four slots. Bytes are exact whole
    numbers, equal to ``footprint``. In a page without widgets it is the picture of
    ``draw_bill``; as text, the bill. InputError for what ``draw_bill`` refuses, and
    for a factor past 2**32.
    """

    _esm, _css = front("bill_view")

    shape = traitlets.Dict().tag(sync=True)
    context = traitlets.Int(1).tag(sync=True, state=True)
    tokens = traitlets.Int(1).tag(sync=True, state=True)
    slots = traitlets.Int(1).tag(sync=True, state=True)
    window = traitlets.Int(1).tag(sync=True, state=True)
    layers = traitlets.Int(1).tag(sync=True, state=True)
    heads = traitlets.Int(1).tag(sync=True, state=True)
    precision = traitlets.Unicode("f16").tag(sync=True, state=True)
    chosen = traitlets.Int(-1).tag(sync=True, state=True)
    """The chapter's setting that is shown, from 0 on; -1: none of them."""

    def __init__(
        self,
        geometry: Geometry = MUSE_GLIMMER,
        context: int = 131_072,
        slots: int = 1,
        tokens: int | None = None,
        precision: str = "f16",
    ) -> None:
        self._geometry = geometry
        given = Price(geometry, context, slots, context if tokens is None else tokens, precision)
        whole("head_dim", geometry.head_dim, 1, POSITION_LIMIT)
        super().__init__(
            shape={
                "head_dim": geometry.head_dim,
                "full_every": min(geometry.full_every, POSITION_LIMIT),
                "limit": geometry.context_limit,
                "least_rows": MIN_CAPACITY,
                "precisions": {name: list(sizes) for name, sizes in PRECISIONS.items()},
            },
            **_factors(given),
        )

    @property
    def price(self) -> Price:
        """What Python set; what the reader moves stays in the browser."""
        return self._priced({name: getattr(self, name) for name in FACTORS})

    def show(self, **factors: Any) -> None:
        """Set factors by name: context, tokens, slots, window, layers, heads, precision.

        InputError for another name, and as ``draw_bill``.
        """
        unknown = [name for name in factors if name not in FACTORS]
        if unknown:
            raise InputError(f"{', '.join(unknown)} is no factor; give {', '.join(FACTORS)}")
        priced = self._priced({name: getattr(self, name) for name in FACTORS} | factors)
        self.put(chosen=-1, **_factors(priced))

    def picture(self) -> Picture:
        """The bill that Python set, as a picture."""
        price = self.price
        return draw_bill(price.geometry, price.context, price.slots, price.tokens, price.precision)

    def _priced(self, factors: dict[str, Any]) -> Price:
        heads = whole("heads", factors["heads"], 1)
        geometry = replace(
            self._geometry,
            n_layers=factors["layers"],
            sliding_window=factors["window"],
            n_kv_heads=heads,
            n_query_heads=heads * (self._geometry.n_query_heads // self._geometry.n_kv_heads),
        )
        return Price(geometry, factors["context"], factors["slots"], factors["tokens"], factors["precision"])


def _factors(price: Price) -> dict[str, Any]:
    g = price.geometry
    counted = {
        "context": price.context,
        "tokens": price.tokens,
        "slots": price.slots,
        "window": g.sliding_window,
        "layers": g.n_layers,
        "heads": g.n_kv_heads,
    }
    for name, value in counted.items():  # the browser's numbers are exact below 2**53
        whole(name, value, 1, POSITION_LIMIT)
    return counted | {"precision": price.precision}
