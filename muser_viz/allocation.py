"""What a store has allocated, plane by plane: a table, and its picture (§15.2)."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz.errors import InputError
from muser_viz.pictures import FAINT, INK, Picture, blank_figure
from muser_viz.store import KvStore

PLANE = np.dtype(
    [("layer", np.int64), ("kind", "U12"), ("layout", "U11"), ("rows", np.int64), ("nbytes", np.int64)]
)
"""A plane in the table: its layer, the layer's kind, its layout, rows and bytes (K and V) allocated."""

_LOOKS = (("#31688e", ""), ("#f0c66b", "///"), ("#7fb685", ".."), ("#b48ead", "xx"))


def plane_table(store: KvStore) -> npt.NDArray[Any]:
    """One row per plane of a store, by layer: structured as PLANE, ``(n_layers,)``."""
    rows = [
        (layer, store.geometry.kind(layer).value, plane.layout.name, plane.capacity, plane.nbytes)
        for layer, plane in enumerate(store.planes)
    ]
    return np.array(rows, PLANE)


def draw_planes(table: npt.NDArray[Any]) -> Picture:
    """Every plane of a table as a bar: layer across, rows up, coloured and hatched by kind (§15.2).

    InputError where it is no table of ``plane_table``'s dtype, or an empty one.
    """
    table = np.asarray(table)
    if table.dtype != PLANE or table.ndim != 1 or not len(table):
        raise InputError(
            f"a table of {table.dtype} of shape {table.shape} was given; give plane_table(store)"
        )
    figure = blank_figure(8.6, 3.9)
    axes = figure.subplots()
    lines = []
    for number, (said, planes) in enumerate(_groups(table)):
        colour, hatch = _LOOKS[number % len(_LOOKS)]
        axes.bar(
            planes["layer"], planes["rows"], 0.86, color=colour, hatch=hatch, edgecolor="white", label=said
        )
        lines.append(f"{said}, {int(planes['nbytes'].sum()):,} in all; layers {_runs(planes['layer'])}")
    axes.set_xlim(-1, len(table))
    axes.set_xlabel("layer", fontsize=9)
    axes.set_ylabel("rows", fontsize=9)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_yticks(np.unique(np.append(table["rows"], 0)))
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        fontsize=9,
        frameon=False,
        labelcolor=INK,
        handleheight=1.4,
    )
    total = f"{len(table)} planes, {int(table['nbytes'].sum()):,} bytes"
    figure.suptitle(total, fontsize=11, color=INK)
    axes.grid(axis="y", color=FAINT, alpha=0.25)
    axes.set_axisbelow(True)
    return Picture(figure, "\n".join([total, *lines]))


def _groups(table: npt.NDArray[Any]) -> list[tuple[str, npt.NDArray[Any]]]:
    """Planes that are alike, with what they have in common as words; by their first layer."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for index, row in enumerate(table):
        found.setdefault(tuple(row.item()[1:]), []).append(index)
    return [
        (f"{kind}: {len(at)} planes, {layout}, {rows:,} rows, {nbytes:,} bytes each", table[at])
        for (kind, layout, rows, nbytes), at in found.items()
    ]


def _runs(layers: npt.NDArray[np.int64]) -> str:
    """Layers as runs: 0-2, 4-6."""
    runs = []
    for _, run in groupby(enumerate(layers.tolist()), lambda pair: pair[1] - pair[0]):
        held = [layer for _, layer in run]
        runs.append(f"{held[0]}-{held[-1]}" if len(held) > 1 else f"{held[0]}")
    return ", ".join(runs)
