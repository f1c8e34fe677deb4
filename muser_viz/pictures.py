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

from muser_viz.bits import differing, hexbits, ulp_distance, words
from muser_viz.checks import whole
from muser_viz.errors import InputError
from muser_viz.trace import RingTrace

INK, FAINT, EMPTY, WRITE, FRONT = "#1b1b1b", "#8a8a8a", "#e9e9e9", "#c1121f", "#e07b00"
_AGES = colormaps["viridis"]
_DPI = 110


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


def draw_bits(a: Any, b: Any, names: tuple[str, str] = ("a", "b"), shown: int = 6) -> Picture:
    """Where two f16 or f32 arrays differ: the vector as a strip, the first words bit by bit (§15.6).

    InputError where shapes or dtypes are unequal, or the arrays are empty.
    """
    mask = differing(a, b).ravel()
    if mask.size == 0:
        raise InputError("two empty arrays were given; give at least one word each")
    shown = whole("shown", shown, 1, 16)
    left, right = words(a).ravel(), words(b).ravel()
    width = 8 * left.itemsize
    exponent = 5 if width == 16 else 8
    picked = np.flatnonzero(mask)[:shown]
    figure = blank_figure(8.6, 1.5 + 0.55 * max(1, len(picked)))
    strip, table = figure.subplots(2, 1, height_ratios=[1, 0.9 + len(picked)])
    line = mask[None].astype(float)
    strip.imshow(
        line, aspect="auto", cmap=ListedColormap(["#dddddd", WRITE]), vmin=0, vmax=1, interpolation="nearest"
    )
    strip.set_yticks([])
    strip.tick_params(labelsize=8)
    strip.set_title(f"{int(mask.sum()):,} of {mask.size:,} words differ (marked)", fontsize=10.5, color=INK)
    bare(table)
    for line_number, index in enumerate(picked):
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
    return Picture(figure, _bits_text(a, b, names, picked, mask))


def _bits_text(a: Any, b: Any, names: tuple[str, str], picked: npt.NDArray[Any], mask: Any) -> str:
    lines = [f"{int(mask.sum()):,} of {mask.size:,} words differ"]
    hexa, hexb = hexbits(a).ravel(), hexbits(b).ravel()
    for index in picked:
        lines.append(f"{names[0]}[{index}] {hexa[index]}  {names[1]}[{index}] {hexb[index]}")
    return "\n".join(lines)


def draw_sweep(swept: Any, own: int) -> Picture:
    """A sweep of rotations against the ring's own: words that differ, and by how much (§15.6).

    ``swept``: f32, ``(rotations, ...)``; ``own``: the row to compare with.
    InputError where it is no row, and for another shape or dtype, or what is not finite.
    """
    outputs = np.asarray(swept)
    if outputs.dtype != np.float32 or outputs.ndim < 2 or len(outputs) < 2 or outputs.size == 0:
        raise InputError(
            f"swept is {outputs.dtype} of shape {outputs.shape}; "
            "give float32 of (rotations, ...) with two rotations or more"
        )
    if not np.isfinite(outputs).all():
        raise InputError("swept holds infinities or NaNs; sizes of differences are drawn of finite numbers")
    own = whole("own", own, 0, len(outputs) - 1)
    flat = outputs.reshape(len(outputs), -1)
    base = np.broadcast_to(flat[own], flat.shape)
    counts = differing(flat, base).sum(axis=1)
    largest = np.abs(flat.astype(np.float64) - base).max(axis=1)
    figure = blank_figure(8.6, 3.9)
    top, low = figure.subplots(2, 1, sharex=True)
    top.plot(counts, ".", ms=2, color="#31688e")
    top.set_ylabel("words that differ", fontsize=9)
    low.plot(largest, ".", ms=2, color="#31688e")
    low.set_ylabel("largest difference", fontsize=9)
    low.set_xlabel("rotation: the row of the window's front", fontsize=9)
    for axes in (top, low):
        axes.axvline(own, color=FRONT, lw=1.5)
        axes.tick_params(labelsize=8)
        axes.grid(color="#eeeeee")
    top.text(own, counts.max() / 2, f" own rotation {own:,}", color=FRONT, fontsize=9, va="center")
    others = np.delete(counts, own)
    figure.suptitle(
        f"{flat.shape[1]:,} words read at each of {len(flat):,} rotations", fontsize=11, color=INK
    )
    furthest = int(ulp_distance(flat, base).max())
    return Picture(
        figure,
        f"{len(flat):,} rotations, {flat.shape[1]:,} words each\n"
        f"own rotation {own:,}: {counts[own]:,} words differ\n"
        f"others: {others.min():,} to {others.max():,} words differ, "
        f"at most {largest.max():.1e}, {furthest:,} ULP\n"
        f"rotations with no word different, the own one among them: {int((counts == 0).sum()):,}",
    )
