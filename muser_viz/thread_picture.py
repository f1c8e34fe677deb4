"""The picture of a store: from each thread to what it reads, to where it writes (§15.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps

from muser_viz.checks import whole
from muser_viz.errors import InputError
from muser_viz.pictures import EMPTY, FAINT, INK, WRITE, Picture, bare, blank_figure
from muser_viz.threads import StoreLaunch

_LIMIT = 32
_THREADS, _SOURCE, _BUFFER = 2.0, 1.25, 0.0
_HALF = 0.17


def draw_threads(*launches: StoreLaunch, past: int = 0, step: int | None = None) -> Picture:
    """Thread, source and destination of each launch, a panel each; ``past`` threads past the guard (§15.4).

    ``step``: one of these threads, drawn after the threads before it (-1: none has run yet);
    left out, or the number of threads, all of them. The text says the same. InputError where
    no launch is given, or one has no thread that stores, or more than 32 threads or cells, or
    a thread that would read or write outside; with ``step``, where the launches do not start
    the same threads, or for a step outside.
    """
    past = checked(launches, past)
    shown = launches[0].grid + past
    if step is not None:
        same_threads(launches)
        step = whole("step", step, -1, shown)
    upto = shown if step is None else step
    figure = blank_figure(8.6, 3.3 * len(launches))
    panels = figure.subplots(len(launches), 1, squeeze=False)[:, 0]
    for axes, launch in zip(panels, launches, strict=True):
        _panel(axes, launch, past, launch.grid + past if step is None else upto)
    lines = [] if step is None else [thread_sentence(launches, past, step)]
    lines += [_said(launch, past, None if step is None else upto) for launch in launches]
    return Picture(figure, "\n".join(lines))


def checked(launches: tuple[StoreLaunch, ...], past: int) -> int:
    """``past``, where these launches can be drawn; InputError otherwise."""
    past = whole("past", past, 0, _LIMIT)
    if not launches:
        raise InputError("no launch was given; give one or more, mv.store_launch(plane, count)")
    for launch in launches:
        if not isinstance(launch, StoreLaunch):
            raise InputError(f"a launch is drawn, mv.store_launch(plane, count), not {type(launch).__name__}")
        size = max(launch.layout.size, launch.grid + past)
        if launch.grid < 1:
            raise InputError("a launch that stores nothing was given; give one with a thread or more")
        if size > _LIMIT:
            raise InputError(
                f"{size} threads or cells were given; an arrow each is drawn of {_LIMIT} or fewer"
            )
        table = launch.threads()
        far = int(table["cell"].max())
        if far >= launch.layout.size:
            raise InputError(
                f"a thread would write cell {far} of {launch.layout.size}; give a launch that stays inside"
            )
        if np.unique(table["cell"]).size < table.size:
            raise InputError(
                "two threads would write one cell; which is last is not known, so it is not drawn"
            )
    return past


def same_threads(launches: tuple[StoreLaunch, ...]) -> None:
    """InputError unless all launches start the same threads, and differ in the cells alone."""
    first = launches[0].threads()
    for launch in launches[1:]:
        table = launch.threads()
        for name in ("source_row", "element", "source", "row"):
            if table.size != first.size or (table[name] != first[name]).any():
                raise InputError(
                    f"the launches' threads differ in {name}; give one launch, or one store in both layouts"
                )


def thread_sentence(launches: tuple[StoreLaunch, ...], past: int, step: int) -> str:
    """What the thread of a step does, and what is stored by then; -1: the start, and past the last: all."""
    grid = launches[0].grid
    count = grid + past
    if step < 0:
        return f"start: {count} threads, nothing stored"
    if step >= count:
        return f"all at once: {grid} threads store, {past} past the guard do nothing"
    stored = f"{min(step + 1, grid)} of {grid} elements stored"
    if step >= grid:
        return f"thread {step}: {step} >= {grid}, past the guard, it does nothing; {stored}"
    table = [launch.threads()[step] for launch in launches]
    cells = ", ".join(
        f"{launch.layout.name} cell {entry['cell']}" for launch, entry in zip(launches, table, strict=True)
    )
    one = table[0]
    reads = f"source row {one['source_row']}, element {one['element']} (source {one['source']})"
    return f"thread {step}: {reads} -> row {one['row']}, {cells}; {stored}"


def _box(
    axes: Any,
    x: float,
    y: float,
    text: str,
    colour: Any,
    ink: str = INK,
    edge: str = "white",
    width: float = 1,
) -> None:
    axes.fill(
        [x - 0.46, x + 0.46, x + 0.46, x - 0.46],
        [y - _HALF, y - _HALF, y + _HALF, y + _HALF],
        facecolor=colour,
        edgecolor=edge,
        linewidth=width,
        zorder=1 if edge == "white" else 3,
    )
    axes.text(x, y, text, ha="center", va="center", fontsize=8.5, color=ink, zorder=4)


def _panel(axes: Any, launch: StoreLaunch, past: int, upto: int) -> None:
    """The threads to ``upto`` have run, and it is marked; where there is no such thread, all have."""
    table = launch.threads(launch.grid + past)
    storing = table[table["stores"]]
    layout = launch.layout
    first = int(storing["source_row"].min())
    rows = int(storing["source_row"].max()) - first + 1
    colours = colormaps["viridis"](np.linspace(0.45, 0.85, max(2, rows)))
    left = (layout.size - len(storing)) / 2
    written = {int(entry["cell"]): entry for entry in storing[: upto + 1]}
    marked: dict[str, Any] = {"edge": WRITE, "width": 2.2}
    for entry in table:
        thread = int(entry["thread"])
        x = left + thread
        mark = marked if thread == upto else {}
        if not entry["stores"]:
            _box(axes, x, _THREADS, str(thread), "white", FAINT, **mark)
            axes.text(x, _THREADS - 0.36, "×", ha="center", va="center", fontsize=9, color=FAINT)  # noqa: RUF001
            continue
        ran = thread <= upto
        colour = colours[int(entry["source_row"]) - first]
        _box(axes, x, _THREADS, str(thread), colour if ran else EMPTY, INK if ran else FAINT, **mark)
        _box(axes, x, _SOURCE, str(entry["source"]), colour, **mark)
        if not ran:
            continue
        axes.annotate(
            "",
            (x, _SOURCE + _HALF),
            (x, _THREADS - _HALF),
            arrowprops={"arrowstyle": "->", "color": WRITE if mark else FAINT, "lw": 1.8 if mark else 0.8},
        )
        axes.annotate(
            "",
            (int(entry["cell"]), _BUFFER + _HALF),
            (x, _SOURCE - _HALF),
            arrowprops={"arrowstyle": "->", "color": WRITE if mark else colour, "lw": 2.2 if mark else 1.4},
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
        mark = marked if held is not None and int(held["thread"]) == upto else {}
        _box(axes, cell, _BUFFER, str(cell), colour, FAINT if held is None else INK, **mark)
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


def _said(launch: StoreLaunch, past: int, upto: int | None) -> str:
    table = launch.threads()[: None if upto is None else upto + 1]
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
