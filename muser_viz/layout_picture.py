"""The two layouts of one small plane, side by side, and as the memory they are (§15.3)."""

from __future__ import annotations

from typing import Any

from matplotlib.patches import Rectangle

from muser_viz.checks import whole
from muser_viz.errors import InputError
from muser_viz.layout import Layout
from muser_viz.pictures import EMPTY, FAINT, INK, WRITE, Picture, bare, blank_figure

HISTORY = "#8fbbdd"
_MOST_ROWS, _MOST_ELEMENTS = 8, 12


def draw_layouts(
    physical: int, element: int, capacity: int = 6, n_kv_heads: int = 2, head_dim: int = 4
) -> Picture:
    """One plane in both layouts: where an element lies (E), and all rows of its KV head (hatched) (§15.3).

    Above, each buffer in its own shape, every cell with its offset, and the two
    index formulas with numbers; below, each buffer as memory from offset 0 on.
    The text holds the formulas, term by term, and the head's spans. InputError
    where row or element lie outside, and for a plane of more than 8 rows or of
    more than 12 elements a row.
    """
    token, head = (Layout(capacity, n_kv_heads, head_dim, head_major) for head_major in (False, True))
    refuse_large(token)
    at = {layout: layout.offset(physical, element) for layout in (token, head)}
    kv_head = element // head_dim
    lines = 2 + max(capacity + 5, n_kv_heads * capacity)
    figure = blank_figure(8.6, 1.9 + 0.31 * lines)
    parts: Any = figure.subfigures(2, 1, height_ratios=[0.31 * lines, 1.75])
    grids, strips = parts
    left, right = grids.subplots(1, 2, width_ratios=[token.kv_dim + 1.4, head_dim + 3.2])
    for axes, layout in ((left, token), (right, head)):
        _grid(axes, layout, kv_head, at[layout], lines)
    for index, (name, steps) in enumerate(_formulas(token, physical, element).items()):
        y = capacity + 0.9 + 2.3 * index
        left.text(-0.5, y, name, va="center", fontsize=9.5, color=FAINT)
        left.text(-0.5, y + 0.9, steps, va="center", fontsize=9.5, color=INK, family="monospace")
    for axes, layout in zip(strips.subplots(2, 1), (token, head), strict=True):
        _strip(axes, layout, kv_head, at[layout])
    grids.suptitle(_title(token, physical, element), fontsize=11, color=INK)
    return Picture(figure, layouts_text(physical, element, capacity, n_kv_heads, head_dim))


def layouts_text(
    physical: int, element: int, capacity: int = 6, n_kv_heads: int = 2, head_dim: int = 4
) -> str:
    """What ``draw_layouts`` draws, in words: the formulas, term by term, and the head's spans."""
    token, head = (Layout(capacity, n_kv_heads, head_dim, head_major) for head_major in (False, True))
    lines = [f"{capacity} rows of {n_kv_heads} KV heads x {head_dim}; {_title(token, physical, element)}"]
    formulas = _formulas(token, physical, element)
    for layout, (name, steps) in zip((token, head), formulas.items(), strict=True):
        lines.append(f"{name}\n  {steps}\n  {_spans(layout, element // head_dim)}")
    return "\n".join(lines)


def _title(layout: Layout, physical: int, element: int) -> str:
    kv_head, dim = divmod(element, layout.head_dim)
    return (
        f"row {physical}, element {element}: KV head {kv_head}, dim {dim} (E); "
        f"all rows of KV head {kv_head} (hatched)"
    )


def refuse_large(layout: Layout) -> None:
    """InputError for a plane that is too large to be read by eye."""
    whole("capacity", layout.capacity, 1, _MOST_ROWS)
    if layout.kv_dim > _MOST_ELEMENTS:
        raise InputError(
            f"a row has {layout.kv_dim} elements; at most {_MOST_ELEMENTS} can be drawn: "
            "give fewer heads or dimensions"
        )


def _formulas(layout: Layout, physical: int, element: int) -> dict[str, str]:
    """Each index formula in words, and the same with numbers, term by term."""
    kv_head, dim = divmod(element, layout.head_dim)
    line = kv_head * layout.capacity + physical
    return {
        "token-major: physical * kv_dim + element": (
            f"{physical} * {layout.kv_dim} + {element} = {physical * layout.kv_dim} + {element}"
            f" = {physical * layout.kv_dim + element}"
        ),
        "head-major: (kv_head * capacity + physical) * head_dim + dim": (
            f"({kv_head} * {layout.capacity} + {physical}) * {layout.head_dim} + {dim}"
            f" = {line * layout.head_dim} + {dim} = {line * layout.head_dim + dim}"
        ),
    }


def _runs(layout: Layout, kv_head: int) -> list[tuple[int, int]]:
    """All rows of one KV head as spans of memory: first offset, and elements."""
    if layout.head_major:
        size = layout.capacity * layout.head_dim
        return [(kv_head * size, size)]
    start = kv_head * layout.head_dim
    if layout.n_kv_heads == 1:
        return [(start, layout.size)]
    return [(row * layout.kv_dim + start, layout.head_dim) for row in range(layout.capacity)]


def _spans(layout: Layout, kv_head: int) -> str:
    runs = _runs(layout, kv_head)
    said = ", ".join(f"{first} to {first + size - 1}" for first, size in runs)
    return f"KV head {kv_head} is {len(runs)} span{'s' if len(runs) > 1 else ''}: {said}"


def _cell(axes: Any, x: float, y: float, of_head: bool, chosen: bool) -> None:
    axes.add_patch(
        Rectangle(
            (x - 0.5, y - 0.5),
            1,
            1,
            facecolor=HISTORY if of_head else EMPTY,
            edgecolor="white",
            hatch="////" if of_head else None,
            linewidth=1,
        )
    )
    if chosen:
        axes.add_patch(
            Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor="white", edgecolor=WRITE, linewidth=2.4, zorder=3)
        )


def _grid(axes: Any, layout: Layout, kv_head: int, at: int, lines: int) -> None:
    """The buffer in its own shape, an offset a cell; memory runs along a line, then to the next."""
    width = layout.head_dim if layout.head_major else layout.kv_dim
    for offset in range(layout.size):
        line, x = divmod(offset, width)
        of_head = (line // layout.capacity if layout.head_major else x // layout.head_dim) == kv_head
        _cell(axes, x, line, of_head, offset == at)
        axes.text(
            x,
            line,
            f"E {offset}" if offset == at else str(offset),
            ha="center",
            va="center",
            fontsize=8.5 if offset == at else 9,
            color=WRITE if offset == at else INK,
            fontweight="bold" if offset == at else "normal",
            zorder=4,
            bbox=None
            if offset == at or not of_head
            else {"facecolor": HISTORY, "edgecolor": "none", "pad": 0.6},
        )
    for line in range(layout.size // width):
        head, row = divmod(line, layout.capacity)
        name = f"head {head}, row {row}" if layout.head_major else f"row {row}"
        axes.text(-0.7, line, name, ha="right", va="center", fontsize=8.5, color=FAINT)
    for head in range(layout.n_kv_heads):
        if layout.head_major and head:
            edge = head * layout.capacity - 0.5
            axes.plot([-0.5, width - 0.5], [edge, edge], color=INK, lw=1.6)
        elif not layout.head_major:
            middle = head * layout.head_dim + (layout.head_dim - 1) / 2
            axes.text(middle, -0.95, f"head {head}", ha="center", va="center", fontsize=8.5, color=FAINT)
            if head:
                edge = head * layout.head_dim - 0.5
                axes.plot([edge, edge], [-0.5, layout.capacity - 0.5], color=INK, lw=1.6)
    axes.set_xlim(-3.2 if layout.head_major else -1.9, width - 0.4)
    axes.set_ylim(lines - 1.2, -1.4)
    axes.set_title(f"{layout.name}: {' x '.join(str(size) for size in layout.shape)}", fontsize=10, color=INK)
    bare(axes)


def _strip(axes: Any, layout: Layout, kv_head: int, at: int) -> None:
    """The buffer as memory, offset 0 at the left."""
    marked = {first + i for first, size in _runs(layout, kv_head) for i in range(size)}
    for offset in range(layout.size):
        _cell(axes, offset, 0, offset in marked, offset == at)
    axes.text(at, 0, "E", ha="center", va="center", fontsize=9, color=WRITE, fontweight="bold", zorder=4)
    for first, size in _runs(layout, kv_head):
        axes.text(first, 0.95, str(first), ha="center", va="center", fontsize=8, color=INK)
        if layout.head_major:
            axes.text(first + size - 1, 0.95, str(first + size - 1), ha="center", va="center", fontsize=8)
    axes.set_xlim(-0.7, layout.size - 0.3)
    axes.set_ylim(1.5, -0.7)
    axes.set_title(
        f"{layout.name} as memory: {_spans(layout, kv_head).split(':', maxsplit=1)[0]}",
        fontsize=9,
        color=INK,
        loc="left",
    )
    bare(axes)
