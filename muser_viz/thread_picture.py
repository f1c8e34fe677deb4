"""The picture of a store: from each thread to what it reads, to where it writes (§15.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps

from muser_viz.checks import whole
from muser_viz.errors import InputError
from muser_viz.pictures import EMPTY, FAINT, INK, Picture, bare, blank_figure
from muser_viz.threads import StoreLaunch

_LIMIT = 32
_THREADS, _SOURCE, _BUFFER = 2.0, 1.25, 0.0
_HALF = 0.17


def draw_threads(*launches: StoreLaunch, past: int = 0) -> Picture:
    """Thread, source and destination of each launch, a panel each; ``past`` threads past the guard (§15.4).

    InputError where no launch is given, or one has no thread that stores, or more than 32
    threads or cells.
    """
    past = whole("past", past, 0, _LIMIT)
    if not launches:
        raise InputError("no launch was given; give one or more, mv.store_launch(plane, count)")
    for launch in launches:
        size = max(launch.layout.size, launch.grid + past)
        if launch.grid < 1:
            raise InputError("a launch that stores nothing was given; give one with a thread or more")
        if size > _LIMIT:
            raise InputError(
                f"{size} threads or cells were given; an arrow each is drawn of {_LIMIT} or fewer"
            )
    figure = blank_figure(8.6, 3.3 * len(launches))
    panels = figure.subplots(len(launches), 1, squeeze=False)[:, 0]
    for axes, launch in zip(panels, launches, strict=True):
        _panel(axes, launch, past)
    return Picture(figure, "\n".join(_said(launch, past) for launch in launches))


def _box(axes: Any, x: float, y: float, text: str, colour: Any, ink: str = INK) -> None:
    axes.fill(
        [x - 0.46, x + 0.46, x + 0.46, x - 0.46],
        [y - _HALF, y - _HALF, y + _HALF, y + _HALF],
        facecolor=colour,
        edgecolor="white",
    )
    axes.text(x, y, text, ha="center", va="center", fontsize=8.5, color=ink)


def _panel(axes: Any, launch: StoreLaunch, past: int) -> None:
    table = launch.threads(launch.grid + past)
    storing = table[table["stores"]]
    layout = launch.layout
    first = int(storing["source_row"].min())
    rows = int(storing["source_row"].max()) - first + 1
    colours = colormaps["viridis"](np.linspace(0.45, 0.85, max(2, rows)))
    left = (layout.size - len(storing)) / 2
    written = {int(entry["cell"]): entry for entry in storing}
    for entry in table:
        x = left + int(entry["thread"])
        if not entry["stores"]:
            _box(axes, x, _THREADS, str(entry["thread"]), "white", FAINT)
            axes.text(x, _THREADS - 0.36, "×", ha="center", va="center", fontsize=9, color=FAINT)  # noqa: RUF001
            continue
        colour = colours[int(entry["source_row"]) - first]
        _box(axes, x, _THREADS, str(entry["thread"]), colour)
        _box(axes, x, _SOURCE, str(entry["source"]), colour)
        axes.annotate(
            "",
            (x, _SOURCE + _HALF),
            (x, _THREADS - _HALF),
            arrowprops={"arrowstyle": "->", "color": FAINT, "lw": 0.8},
        )
        axes.annotate(
            "",
            (int(entry["cell"]), _BUFFER + _HALF),
            (x, _SOURCE - _HALF),
            arrowprops={"arrowstyle": "->", "color": colour, "lw": 1.4},
        )
    for row in range(rows):
        middle = left + (row + 0.5) * layout.kv_dim - 0.5
        axes.text(middle, _THREADS + 0.32, f"source row {first + row}", ha="center", fontsize=8.5, color=INK)
    if past:
        middle = left + len(storing) + (past - 1) / 2
        axes.text(middle, _THREADS + 0.32, "past the guard", ha="center", fontsize=8.5, color=FAINT)
    for cell in range(layout.size):
        held = written.get(cell)
        colour = EMPTY if held is None else colours[int(held["source_row"]) - first]
        _box(axes, cell, _BUFFER, str(cell), colour, FAINT if held is None else INK)
    group = layout.head_dim if layout.head_major else layout.kv_dim
    for start in range(0, layout.size, group):
        number = start // group
        place = f"row {number % layout.capacity}"
        axes.text(
            start + (group - 1) / 2, _BUFFER - 0.34, place, ha="center", va="center", fontsize=8, color=INK
        )
    for head in range(layout.n_kv_heads if layout.head_major else 0):
        from_cell = head * layout.capacity * group
        to_cell = from_cell + layout.capacity * group - 1
        axes.plot([from_cell - 0.4, to_cell + 0.4], [_BUFFER - 0.52] * 2, color=FAINT, lw=1)
        axes.text(
            (from_cell + to_cell) / 2,
            _BUFFER - 0.67,
            f"head {head}",
            ha="center",
            va="center",
            fontsize=8,
            color=INK,
        )
    for y, name in ((_THREADS, "thread"), (_SOURCE, "reads source"), (_BUFFER, "writes cell")):
        axes.text(-0.8, y, name, ha="right", va="center", fontsize=9, color=INK)
    axes.set_xlim(-3.6, max(layout.size, left + len(table)))
    axes.set_ylim(_BUFFER - 0.8, _THREADS + 0.55)
    axes.set_title(f"{layout.name}, {launch.kernel}", fontsize=10, color=INK)
    bare(axes)


def _said(launch: StoreLaunch, past: int) -> str:
    table = launch.threads()
    stores = f"{launch.grid} threads store, {past} past the guard do nothing"
    lines = [f"{launch.layout.name}, {launch.kernel}: {stores}"]
    for source_row in np.unique(table["source_row"]):
        mine = table[table["source_row"] == source_row]
        cells = " ".join(str(cell) for cell in mine["cell"])
        lines.append(
            f"threads {mine['thread'][0]} to {mine['thread'][-1]}: source row {source_row} -> "
            f"row {mine['row'][0]}, cells {cells}"
        )
    return "\n".join(lines)
