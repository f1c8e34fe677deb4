"""The bill as a picture and as sliders: bytes by layer class, live and allocated, at a precision (§15.7)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import ipywidgets as widgets
import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from muser_viz.bill import HALF_BYTES, footprint
from muser_viz.checks import whole
from muser_viz.errors import InputError
from muser_viz.geometry import MUSE_GLIMMER, Geometry
from muser_viz.pictured import PicturedView
from muser_viz.pictures import FAINT, FRONT, INK, Picture, blank_figure

PRECISIONS = {"f16": (1, 2), "Q8_0": (32, 34), "f32": (1, 4)}
"""Elements of a block, and the bytes that a block takes."""

_SLIDING, _FULL = "#31688e", "#35a06b"


@dataclass(frozen=True)
class Price:
    """Bytes of ``slots`` sessions allocated for ``context`` tokens, ``tokens`` of them live in each (§15.7).

    The f16 bytes of ``footprint`` give the elements, the precision's blocks the
    bytes. InputError for what ``footprint`` refuses, more live tokens than
    ``context``, an unknown precision, or a row that is no whole number of blocks.
    """

    geometry: Geometry
    context: int
    slots: int
    tokens: int
    precision: str

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise InputError(f"precision is {self.precision!r}; give one of {', '.join(PRECISIONS)}")
        block, _ = PRECISIONS[self.precision]
        if self.geometry.kv_dim % block:
            raise InputError(
                f"a row has {self.geometry.kv_dim} elements, which is no whole number of {self.precision} "
                f"blocks; give KV heads x head dim as a multiple of {block}"
            )
        context = whole("context", self.context, 1, self.geometry.context_limit)
        object.__setattr__(self, "tokens", whole("tokens", self.tokens, 1, context))
        object.__setattr__(self, "context", context)
        object.__setattr__(self, "slots", whole("slots", self.slots, 1))

    def _bytes(self, f16_bytes: int) -> int:
        block, size = PRECISIONS[self.precision]
        return f16_bytes // HALF_BYTES // block * size

    @property
    def row(self) -> int:
        """Bytes of one K row, or one V row."""
        return self._bytes(footprint(self.geometry, self.context).row)

    def live(self, tokens: int | None = None) -> tuple[int, int]:
        """Live bytes of the sliding and of the full planes, after ``tokens`` (None: as given)."""
        bill = footprint(self.geometry, self.tokens if tokens is None else tokens, self.slots)
        return self._bytes(bill.sliding_live), self._bytes(bill.full_live)

    @property
    def allocated(self) -> tuple[int, int]:
        """Allocated bytes of the sliding and of the full planes."""
        bill = footprint(self.geometry, self.context, self.slots)
        return self._bytes(bill.sliding_allocated), self._bytes(bill.full_allocated)

    @property
    def even(self) -> int | None:
        """Tokens from which on the full planes hold half or more; None where no ``context`` reaches that.

        None, too, where it holds from the first token on.
        """
        g = self.geometry
        sliding, full = len(g.sliding_layers), len(g.full_layers)
        if not 0 < full < sliding:
            return None
        even = math.ceil(sliding * g.sliding_window / full)
        return even if even <= self.context else None

    def headline(self) -> str:
        """What is paid for, in one sentence."""
        g = self.geometry
        slots = "1 slot" if self.slots == 1 else f"{self.slots:,} slots"
        return (
            f"{slots} of max_context {self.context:,}, tokens {self.tokens:,}; "
            f"{len(g.sliding_layers)} sliding layers of window {g.sliding_window:,} and "
            f"{len(g.full_layers)} full; {g.n_kv_heads} KV heads x {g.head_dim}, {self.precision}"
        )

    def text(self) -> str:
        """The headline, live and allocated bytes by class, and how they grow with tokens."""
        live, allocated = self.live(), self.allocated
        lines = [self.headline(), f"{'bytes':8} {'live':>18} {'allocated':>18}"]
        for name, a, b in zip(
            ("sliding", "full", "both"), (*live, sum(live)), (*allocated, sum(allocated)), strict=True
        ):
            lines.append(f"{name:8} {a:18,} {b:18,}")
        lines += ["live after", f"{'tokens':>9} {'sliding':>16} {'full':>18} {'full layers hold':>17}"]
        for tokens in sorted(
            {n for n in (1, 512, 2_048, 8_192, 32_768) if n < self.context} | {self.context}
        ):
            sliding, full = self.live(tokens)
            lines.append(f"{tokens:9,} {sliding:16,} {full:18,} {full / (sliding + full):16.2%}")
        if self.even is not None:
            lines.append(f"full layers hold half or more from {self.even:,} tokens on")
        return "\n".join(lines)


def _unit(size: float, _: Any = None) -> str:
    for power, name in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**power:
            return f"{size / 1024**power:,.0f} {name}"
    return f"{size:,.0f} B"


def draw_bill(
    geometry: Geometry = MUSE_GLIMMER,
    context: int = 131_072,
    slots: int = 1,
    tokens: int | None = None,
    precision: str = "f16",
) -> Picture:
    """Bytes by layer class against the tokens of a session, log x: live, allocated, the share (§15.7).

    ``context`` is what the planes are allocated for, ``tokens`` (None: all of
    them) what is live at the marker. ``precision``: f16, Q8_0 (34 bytes for 32
    elements) or f32. InputError as ``Price``.
    """
    return _drawn(Price(geometry, context, slots, context if tokens is None else tokens, precision))


def _drawn(price: Price) -> Picture:
    limit = price.geometry.context_limit
    corners = {1, price.context, min(price.geometry.sliding_window, price.context)}
    spread = np.geomspace(1, price.context, 200).round().astype(int).tolist()
    x = np.array(sorted({*corners, *spread}))
    sliding, full = np.array([price.live(int(n)) for n in x], np.float64).T
    figure = blank_figure(8.6, 5.4)
    sizes, shares = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
    _sizes(sizes, price, x, sliding, full)
    share = 100 * full / (sliding + full)
    wide, share = np.append(0.85, x), np.append(share[0], share)  # from the edge on, so that one token shows
    shares.fill_between(wide, 0, share, color=_FULL, alpha=0.75, lw=0)
    shares.fill_between(wide, share, 100, color=_SLIDING, alpha=0.75, lw=0)
    shares.set_ylim(0, 100)
    shares.set_ylabel("% of live bytes", fontsize=9)
    shares.set_xlabel("tokens in the session", fontsize=9)
    if price.geometry.sliding_layers:
        shares.text(1.3, 88, "sliding", color=INK, fontsize=9, va="center", fontweight="bold")
    if price.geometry.full_layers:
        shares.text(1.3, 10, "full", color=INK, fontsize=9, va="center", fontweight="bold")
    shares.axvline(price.tokens, color=FRONT, lw=1.5)
    for axes in (sizes, shares):
        axes.tick_params(labelsize=8)
    shares.set_xscale("log", base=2)
    shares.set_xlim(0.85, limit * 1.25)
    ticks = [*(4.0**k for k in range(17) if 4**k < limit / 2), float(limit)]
    shares.xaxis.set_major_locator(FixedLocator(ticks))
    shares.xaxis.set_minor_locator(NullLocator())
    shares.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))
    figure.suptitle(price.headline().replace("; ", "\n", 1), fontsize=10.5, color=INK)
    return Picture(figure, price.text())


def _sizes(axes: Any, price: Price, x: Any, sliding: Any, full: Any) -> None:
    allocated, live = sum(price.allocated), sum(price.live())
    one = "o" if len(x) == 1 else ""
    axes.plot(
        [1, price.context],
        [allocated] * 2,
        "--" + one,
        color=FAINT,
        lw=1.5,
        label=f"allocated for {price.context:,}: {allocated:,} B",
    )
    axes.plot(x, sliding + full, ":" + one, color=INK, lw=1.2, label="both, live")
    for values, colour, name, left in (
        (sliding, _SLIDING, "sliding", sliding[0] >= full[0]),
        (full, _FULL, "full", full[0] > sliding[0]),
    ):
        if values[-1]:
            axes.plot(x, values, "-" + one, color=colour, lw=2.2, label=f"{name}, live")
        if values[-1] and len(x) > 20:
            axes.annotate(
                f"{name}, live",
                (x[len(x) // 3], values[len(x) // 3]),
                (-14, 10) if left else (14, -10),
                textcoords="offset points",
                color=colour,
                fontsize=9,
                ha="right" if left else "left",
                va="center",
            )
    axes.axvline(price.tokens, color=FRONT, lw=1.5, label=f"live at {price.tokens:,}: {live:,} B")
    if price.even is not None:
        even = price.live(price.even)[1]
        axes.plot([price.even], [even], "o", color=INK, ms=5)
        axes.annotate(
            f"even at {price.even:,}",
            (price.even, even),
            (8, -12),
            textcoords="offset points",
            color=INK,
            fontsize=9,
        )
    low, high = float(sliding[0] + full[0]) / 16, allocated * 4
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(FixedLocator([2.0**k for k in range(0, 72, 4) if low <= 2**k <= high]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(_unit))
    axes.grid(color="#eeeeee")
    axes.legend(loc="lower right", fontsize=8.5, framealpha=0.95)


class Bill(PicturedView):
    """The bill with a slider for each of its factors, from the values given on (§15.7).

    Arguments are those of ``draw_bill``. The sliders for tokens move in powers
    of two; other numbers can be typed. Live tokens past the context count as
    the context. In a page without widgets it is the picture; as text, the bill.
    """

    STATUS = '<pre role="status">{}</pre>'

    def __init__(
        self,
        geometry: Geometry = MUSE_GLIMMER,
        context: int = 131_072,
        slots: int = 1,
        tokens: int | None = None,
        precision: str = "f16",
    ) -> None:
        given = Price(geometry, context, slots, context if tokens is None else tokens, precision)
        super().__init__()
        self._geometry = geometry
        limit = geometry.context_limit
        self._context = _tokens("context", given.context, limit)
        self._tokens = _tokens("live tokens", given.tokens, limit)
        self._window = _tokens("window", geometry.sliding_window, max(limit, geometry.sliding_window))
        self._slots = _count("slots", given.slots, 16)
        self._layers = _count("layers", geometry.n_layers, 104)
        self._heads = _count("KV heads", geometry.n_kv_heads, 16)
        self._precision = widgets.ToggleButtons(
            options=list(PRECISIONS), value=precision, description="precision"
        )
        controls = (
            self._context,
            self._tokens,
            self._slots,
            self._window,
            self._layers,
            self._heads,
            self._precision,
        )
        for control in controls:
            control.observe(self.redraw, names="value")
        self.assemble(*controls)

    @property
    def price(self) -> Price:
        """What the sliders say."""
        heads = int(self._heads.value)
        geometry = replace(
            self._geometry,
            n_layers=int(self._layers.value),
            sliding_window=_rounded(self._window),
            n_kv_heads=heads,
            n_query_heads=heads * (self._geometry.n_query_heads // self._geometry.n_kv_heads),
        )
        context = min(_rounded(self._context), geometry.context_limit)
        return Price(
            geometry,
            context,
            int(self._slots.value),
            min(_rounded(self._tokens), context),
            str(self._precision.value),
        )

    def picture(self) -> Picture:
        """The present bill as a picture."""
        return _drawn(self.price)


def _tokens(name: str, value: int, most: int) -> Any:
    return widgets.FloatLogSlider(
        value,
        base=2,
        min=0,
        max=max(1.0, math.log2(most)),
        step=1,
        description=name,
        readout_format=",.0f",
        continuous_update=False,
        layout=widgets.Layout(width="70%"),
    )


def _count(name: str, value: int, most: int) -> Any:
    return widgets.IntSlider(
        value,
        1,
        max(most, value),
        description=name,
        continuous_update=False,
        layout=widgets.Layout(width="70%"),
    )


def _rounded(slider: Any) -> int:
    return max(1, round(float(slider.value)))
