"""Pictures of traces and arrays: a matplotlib figure and the text that says the same."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from muser_viz.bits import differing, hexbits, words
from muser_viz.checks import whole
from muser_viz.errors import InputError
from muser_viz.sweeps import MEASURES, Measure, Sweep
from muser_viz.trace import RingTrace
from muser_viz.word_pairs import pair_text

INK, FAINT, EMPTY, WRITE, FRONT = "#1b1b1b", "#8a8a8a", "#e9e9e9", "#c1121f", "#e07b00"
_AGES = colormaps["viridis"]
_DPI = 110
_BINS, _TALL = 800, 24


class Picture:
    """A finished picture: PNG bytes, and ``text`` with the same content for who cannot see it."""

    def __init__(self, figure: Figure, text: str) -> None:
        self.text = text
        drawn = io.BytesIO()
        FigureCanvasAgg(figure).print_png(drawn)
        self.png = drawn.getvalue()

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        data = {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.text}
        return data, {"image/png": {"alt": self.text}}

    def __repr__(self) -> str:
        return self.text


def blank_figure(width: float, height: float) -> Figure:
    """A white figure of so many inches, for any theme."""
    return Figure(figsize=(width, height), dpi=_DPI, facecolor="white", layout="constrained")


def bare(axes: Any) -> None:
    """Take away ticks and frame."""
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def draw_ring(trace: RingTrace, step: int = -1) -> Picture:
    """The ring after a step (-1: the start): every row by age, and the rows near the write (§15.5).

    The written row is marked W, the front of the window F, in the ring and in
    the list beside it. InputError for a step outside the trace.
    """
    ring = trace.ring(step)
    tokens = ring.occupants()
    first, count = 0, 0
    if step >= 0:
        first, count = int(trace.first_row[step]), int(trace.rows_written[step])
    figure = blank_figure(8.6, 4.4)
    wheel, rows = figure.subplots(1, 2, width_ratios=[1.05, 1])
    _wheel(wheel, tokens, ring.next_position)
    marks = [(ring.origin_physical, "F", FRONT)] if ring.len else []
    if count:
        marks.append(((first + count - 1) % ring.capacity, "W", WRITE))
    for row, letter, colour in marks:
        angle = np.pi / 2 - 2 * np.pi * (row + 0.5) / ring.capacity
        radius = 1.17 if letter == "F" else 0.52
        x, y = np.cos(angle), np.sin(angle)
        near = 1.0 if letter == "F" else 0.66
        wheel.plot(
            [near * x, (radius - 0.08 * np.sign(radius - near)) * x],
            [near * y, (radius - 0.08 * np.sign(radius - near)) * y],
            color=colour,
            lw=2.5,
        )
        wheel.text(
            radius * x,
            radius * y,
            letter,
            color=colour,
            ha="center",
            va="center",
            fontsize=15,
            fontweight="bold",
        )
    wheel.text(0, 0, f"next token\n{ring.next_position:,}", ha="center", va="center", color=INK, fontsize=12)
    focus = (first + max(count, 1) - 1) % ring.capacity
    _rows(rows, trace, tokens, focus, first, count, ring.origin_physical if ring.len else -1)
    text = trace.sentence(step)
    figure.suptitle(text.replace("; ", "\n", 1), fontsize=11, color=INK)
    return Picture(figure, text)


def _wheel(axes: Any, tokens: npt.NDArray[np.int64], next_position: int) -> None:
    capacity = len(tokens)
    side = np.linspace(-1.3, 1.3, 520)
    x, y = np.meshgrid(side, -side)
    radius = np.hypot(x, y)
    row = (np.mod(np.pi / 2 - np.arctan2(y, x), 2 * np.pi) / (2 * np.pi) * capacity).astype(int) % capacity
    age = (next_position - 1 - tokens) / max(1, capacity - 1)
    colour = np.where((tokens >= 0)[:, None], _AGES(1 - 0.92 * age), np.array([0.913, 0.913, 0.913, 1.0]))
    image = np.ones((*radius.shape, 4))
    band = (radius >= 0.68) & (radius <= 0.98)
    image[band] = colour[row[band]]
    if capacity <= 64:
        turn = np.mod(np.pi / 2 - np.arctan2(y, x), 2 * np.pi) / (2 * np.pi) * capacity
        image[band & (np.abs(turn - np.rint(turn)) * 2 * np.pi / capacity * radius < 0.006)] = 1.0
    axes.imshow(image, extent=(-1.3, 1.3, -1.3, 1.3), interpolation="nearest")
    for quarter in range(4) if capacity > 64 else ():
        at = capacity * quarter // 4
        angle = np.pi / 2 - 2 * np.pi * at / capacity
        axes.text(
            0.83 * np.cos(angle),
            0.83 * np.sin(angle),
            f"{at:,}",
            ha="center",
            va="center",
            fontsize=8,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.2},
        )
    for at in range(capacity) if capacity <= 64 else ():
        angle = np.pi / 2 - 2 * np.pi * (at + 0.5) / capacity
        axes.text(
            0.83 * np.cos(angle),
            0.83 * np.sin(angle),
            str(tokens[at]) if tokens[at] >= 0 else "-",
            ha="center",
            va="center",
            fontsize=9 if capacity <= 16 else 6,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
        )
    bare(axes)


def _rows(
    axes: Any, trace: RingTrace, tokens: npt.NDArray[np.int64], focus: int, first: int, count: int, front: int
) -> None:
    capacity = len(tokens)
    shown = min(capacity, 11)
    near = (
        [(focus - shown // 2 + i) % capacity for i in range(shown)] if capacity > shown else range(capacity)
    )
    for line, row in enumerate(near):
        y = -line
        fresh = count > 0 and (row - first) % capacity < count
        axes.barh(y, 1, 0.86, color=EMPTY, edgecolor=WRITE if fresh else "white", linewidth=1.8)
        axes.text(-0.04, y, f"row {row:,}", ha="right", va="center", fontsize=10, color=FAINT)
        held = f"token {tokens[row]:,}" if tokens[row] >= 0 else "empty"
        axes.text(0.5, y, held, ha="center", va="center", fontsize=10.5, color=INK)
        if fresh:
            axes.text(1.04, y, "W written", ha="left", va="center", fontsize=10, color=WRITE)
        elif row == front:
            axes.text(1.04, y, "F front", ha="left", va="center", fontsize=10, color=FRONT)
    axes.set_xlim(-0.42, 1.45)
    axes.set_ylim(-shown + 0.4, 0.6)
    axes.set_title(f"rows near the write, of {trace.capacity:,}", fontsize=10, color=INK)
    bare(axes)


def draw_bits(
    a: Any, b: Any, names: tuple[str, str] = ("a", "b"), shown: int = 6, index: int | None = None
) -> Picture:
    """Where two f16 or f32 arrays differ: the vector as a strip, words bit by bit (§15.6).

    Up to ``shown`` words: the first ones that differ, or the word ``index`` (of
    the flat array) and then the differing ones after it. InputError where shapes
    or dtypes are unequal, the arrays are empty, or ``index`` lies outside them.
    """
    mask = differing(a, b).ravel()
    if mask.size == 0:
        raise InputError("two empty arrays were given; give at least one word each")
    shown = whole("shown", shown, 1, 16)
    first = 0 if index is None else whole("index", index, 0, mask.size - 1)
    left, right = np.asarray(a).ravel(), np.asarray(b).ravel()
    found = first + np.flatnonzero(mask[first:])
    if index is not None and not mask[first]:
        found = np.concatenate([[first], found])
    picked = found[:shown]
    figure = blank_figure(8.6, 1.7 + 0.55 * max(1, len(picked)))
    strip, table = figure.subplots(2, 1, height_ratios=[1, 0.9 + len(picked)])
    strip.imshow(
        _strip(mask),
        aspect="auto",
        cmap=ListedColormap(["#dddddd", WRITE]),
        vmin=0,
        vmax=1,
        interpolation="nearest",
        extent=(-0.5, mask.size - 0.5, 1, 0),
    )
    strip.set_yticks([])
    strip.tick_params(labelsize=8)
    told = _told(mask)
    strip.set_title(f"{told} (marked)", fontsize=10.5, color=INK, pad=6 if index is None else 18)
    if index is not None:
        strip.annotate(
            f"{first:,}",
            (first, 1),
            (first, -0.12),
            color=INK,
            fontsize=8.5,
            ha="center",
            va="bottom",
            arrowprops={"arrowstyle": "-", "color": INK, "lw": 1.2},
            annotation_clip=False,
        )
    _bit_table(table, words(left), words(right), names, picked)
    lines = [told]
    if index is not None:
        lines.append(pair_text(names, first, left[first], right[first]))
        picked = picked[1:]
    one, two = hexbits(left[picked]), hexbits(right[picked])
    lines += [f"{names[0]}[{at}] {one[i]}  {names[1]}[{at}] {two[i]}" for i, at in enumerate(picked.tolist())]
    return Picture(figure, "\n".join(lines))


def _strip(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """The words as a line of cells; more than can be seen in bins, lit as high as the share that differs."""
    if mask.size <= _BINS:
        return mask[None].astype(np.float64)
    bounds = np.arange(_BINS) * mask.size // _BINS
    counts = np.add.reduceat(mask.astype(np.int64), bounds)
    lit = np.ceil(counts / np.diff(bounds, append=mask.size) * _TALL)
    height = np.where(counts > 0, np.maximum(lit, _TALL // 6), 0)
    return (np.arange(_TALL, 0, -1)[:, None] <= height).astype(np.float64)


def _told(mask: npt.NDArray[np.bool_]) -> str:
    return f"{int(mask.sum()):,} of {mask.size:,} words differ"


def _bit_table(
    table: Any,
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    names: tuple[str, str],
    picked: npt.NDArray[np.int64],
) -> None:
    width = 8 * left.itemsize
    exponent = 5 if width == 16 else 8
    bare(table)
    for line_number, index in enumerate(picked.tolist()):
        for half, word in enumerate((int(left[index]), int(right[index]))):
            y = -(2.4 * line_number + half)
            flipped = int(left[index]) ^ int(right[index])
            for bit in range(width):
                x = bit + (0.5 if bit >= 1 else 0) + (0.5 if bit > exponent else 0)
                at = width - 1 - bit
                lit = flipped >> at & 1
                table.text(
                    x,
                    y,
                    str(word >> at & 1),
                    ha="center",
                    va="center",
                    family="monospace",
                    fontsize=9,
                    color="white" if lit else INK,
                    fontweight="bold" if lit else "normal",
                    bbox={"facecolor": WRITE, "edgecolor": "none", "pad": 1.4} if lit else None,
                )
            table.text(-1.2, y, f"{names[half]}[{index:,}]", ha="right", va="center", fontsize=9, color=FAINT)
    table.set_xlim(-9, width + 1.5)
    table.set_ylim(-2.4 * max(1, len(picked)) + 0.6, 1.6)
    for x, name in (
        (0, "sign"),
        (1.5 + (exponent - 1) / 2, "exponent"),
        ((width + exponent) / 2 + 1, "mantissa"),
    ):
        table.text(x, 1.1, name, ha="center", va="center", fontsize=8.5, color=FAINT)


def draw_sweep(
    swept: Any, own: int, picked: int | None = None, fold: int | None = None, measure: Measure = "words"
) -> Picture:
    """A sweep of rotations against the ring's own: words that differ, and by how much (§15.6).

    ``swept``: f32, ``(rotations, ...)``; ``own``: the row to compare with;
    ``picked``: a rotation to say more of; ``fold``: a period to fold the
    rotations by, in lines of so many, coloured by ``measure`` ("words", "size"
    or "ulp"). InputError where ``own`` or ``picked`` is no row, the fold leaves
    fewer than two lines, for another measure, shape or dtype, or what is not finite.
    """
    sweep = Sweep.of(swept, own)
    own = sweep.own
    if picked is not None:
        picked = whole("picked", picked, 0, len(sweep) - 1)
    sweep.values(measure)
    if fold is not None:
        fold = whole("fold", fold, 1, len(sweep) // 2)
    figure = blank_figure(8.6, 3.9 if fold is None else 6.1)
    panels = figure.subplots(
        2 if fold is None else 3, 1, height_ratios=[1, 1] + ([] if fold is None else [1.25])
    )
    top, low = panels[:2]
    low.sharex(top)
    top.plot(sweep.counts, ".", ms=2, color="#31688e")
    top.set_ylabel("words that differ", fontsize=9)
    low.plot(sweep.sizes, ".", ms=2, color="#31688e")
    low.set_ylabel("largest difference", fontsize=9)
    low.set_xlabel("rotation: the row of the window's front", fontsize=9)
    for axes in (top, low):
        axes.axvline(own, color=FRONT, lw=1.5, ls="--" if picked is not None else "-")
        if picked is not None:
            axes.axvline(picked, color=INK, lw=1)
        axes.tick_params(labelsize=8)
        axes.grid(color="#eeeeee")
    middle = sweep.counts.max() / 2
    top.text(own, middle, f" own rotation {own:,}", color=FRONT, fontsize=9, va="center")
    if picked is not None and picked != own:
        top.text(picked, middle / 2, f" picked {picked:,}", color=INK, fontsize=9, va="center")
    lines = [sweep.summary()]
    if picked is not None:
        lines.append(sweep.said(picked))
    if fold is not None:
        _folded(figure, panels[2], sweep, fold, measure, picked)
        lines.append(sweep.folded(measure, fold))
    figure.suptitle(f"{sweep.width:,} words read at each of {len(sweep):,} rotations", fontsize=11, color=INK)
    return Picture(figure, "\n".join(lines))


def _folded(figure: Any, axes: Any, sweep: Sweep, fold: int, measure: str, picked: int | None) -> None:
    values = sweep.values(measure)
    grid = np.full(-(-len(sweep) // fold) * fold, np.nan)
    grid[: len(sweep)] = values
    low, high = sweep.spanned(measure)
    image = axes.imshow(
        grid.reshape(-1, fold),
        aspect="auto",
        cmap="viridis",
        vmin=low,
        vmax=high,
        interpolation="nearest",
    )
    for row, colour in ((sweep.own, FRONT), (picked, INK)):
        if row is not None:
            for edge, thick in (("white", 4.5), (colour, 2.0)):
                axes.plot(
                    row % fold,
                    row // fold,
                    "s",
                    ms=9,
                    mfc="none",
                    mec=edge,
                    mew=thick,
                    clip_on=False,
                    zorder=3,
                )
    axes.set_xlabel(f"rotation modulo {fold}", fontsize=9)
    axes.set_ylabel(f"rotation over {fold}", fontsize=9)
    axes.tick_params(labelsize=8)
    bar = figure.colorbar(image, ax=axes, pad=0.01, extend="both")
    bar.set_label(MEASURES[measure], fontsize=8.5)
    bar.ax.tick_params(labelsize=8)
