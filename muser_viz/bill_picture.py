"""The bill as a picture: bytes by layer class, live and allocated, at a precision (§15.7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from muser_viz.bill import HALF_BYTES, footprint
from muser_viz.checks import whole
from muser_viz.errors import InputError
from muser_viz.geometry import MIN_CAPACITY, MUSE_GLIMMER, Geometry
from muser_viz.pictures import FAINT, FRONT, INK, Picture, blank_figure

PRECISIONS = {"f16": (1, 2), "Q8_0": (32, 34), "f32": (1, 4)}
"""Elements of a block, and the bytes that a block takes."""

_SLIDING, _FULL = "#31688e", "#35a06b"
_BINARY, _DECIMAL = ("B", "KiB", "MiB", "GiB", "TiB", "PiB"), ("B", "kB", "MB", "GB", "TB", "PB")


def fixed(part: int, whole: int, places: int) -> str:
    """``part / whole`` to so many places, half away from zero; exact, whatever their size."""
    digits = f"{(2 * part * 10**places + whole) // (2 * whole):0{places + 1}}"
    return f"{int(digits[:-places]):,}.{digits[-places:]}"


def sized(size: int) -> str:
    """A byte count in the binary and in the decimal unit: "1.625 GiB = 1.745 GB"; below 1,000: "512 B"."""
    if size < 1000:
        return f"{size} B"
    said = []
    for base, names in ((1024, _BINARY), (1000, _DECIMAL)):
        power = max(k for k in range(len(names)) if size >= base**k)
        value = fixed(size, base**power, 3).rstrip("0").rstrip(".")
        said.append(f"{value} {names[power]}")
    return " = ".join(said)


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

    def terms(self) -> tuple[tuple[str, str, int], ...]:
        """Each term as (name, the multiplication, bytes), at this precision; "/" divides."""
        g = self.geometry
        block, size = PRECISIONS[self.precision]
        blocks = f" / {block}" if block > 1 else ""
        token_layer = 2 * self.row
        named = [
            ("one K row, or V row", f"{g.n_kv_heads:,} x {g.head_dim:,}{blocks} x {size}", self.row),
            ("K and V, a layer and token", f"2 x {self.row:,}", token_layer),
            ("one token, all layers", f"{g.n_layers:,} x {token_layer:,}", g.n_layers * token_layer),
        ]
        held = {
            "live": (self.live(), (min(self.tokens, g.sliding_window), self.tokens)),
            "allocated": (
                self.allocated,
                (max(MIN_CAPACITY, min(self.context, g.sliding_window)), max(MIN_CAPACITY, self.context)),
            ),
        }
        for kind, (sizes, rows) in held.items():
            layers = (len(g.sliding_layers), len(g.full_layers))
            for name, n, m, paid in zip(("sliding", "full"), layers, rows, sizes, strict=True):
                product = f"{self.slots:,} x {n:,} x {m:,} x {token_layer:,}"
                named.append((f"{name}, {kind}", product, paid))
            named.append((f"both, {kind}", f"{sizes[0]:,} + {sizes[1]:,}", sum(sizes)))
        return tuple(named)

    def shares(self) -> tuple[str, str]:
        """The full layers' part of the live and of the allocated bytes, in percent."""
        live, allocated = self.live(), self.allocated
        return fixed(100 * live[1], sum(live), 2) + "%", fixed(100 * allocated[1], sum(allocated), 2) + "%"

    def sentence(self) -> str:
        """The headline, what is live and what is allocated, and the full layers' share."""
        (a, b), (c, d), (live, allocated) = self.live(), self.allocated, self.shares()
        return (
            f"{self.headline()}: live {a + b:,} B (sliding {a:,}, full {b:,}), "
            f"allocated {c + d:,} B (sliding {c:,}, full {d:,}); "
            f"the full layers hold {live} of the live bytes, {allocated} of the allocated"
        )

    def text(self) -> str:
        """The headline, live and allocated bytes by class, every term, and how they grow with tokens."""
        live, allocated = self.live(), self.allocated
        lines = [self.headline(), f"{'bytes':8} {'live':>18} {'allocated':>18}"]
        for name, a, b in zip(
            ("sliding", "full", "both"), (*live, sum(live)), (*allocated, sum(allocated)), strict=True
        ):
            lines.append(f"{name:8} {a:18,} {b:18,}")
        for name, product, paid in self.terms():
            lines.append(f"{name}: {product} = {paid:,} B" + (f" = {sized(paid)}" if paid >= 1000 else ""))
        lines.append("the full layers hold {} of the live bytes, {} of the allocated".format(*self.shares()))
        lines += ["live after", f"{'tokens':>9} {'sliding':>16} {'full':>18} {'full layers hold':>17}"]
        for tokens in sorted(
            {n for n in (1, 512, 2_048, 8_192, 32_768) if n < self.context} | {self.context}
        ):
            sliding, full = self.live(tokens)
            lines.append(f"{tokens:9,} {sliding:16,} {full:18,} {fixed(100 * full, sliding + full, 2):>15}%")
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
