"""What runs the kernels here, as a picture (§15.4)."""

from __future__ import annotations

import textwrap

from muser_viz import devices
from muser_viz.pictures import EMPTY, FAINT, INK, Picture, bare, blank_figure

RUNS = "#2a7f62"


def draw_backends() -> Picture:
    """The backends in the order of preference: which run here, and why the others do not.

    What the picture shows is this machine's; its text names the backends alone, so
    that it is the same everywhere.
    """
    table = devices.backends()
    figure = blank_figure(8.6, 2.9)
    axes = figure.subplots()
    for line, status in enumerate(table):
        axes.barh(-line, 0.16, 0.72, color=RUNS if status.available else EMPTY)
        axes.text(
            0.08,
            -line,
            status.name,
            ha="center",
            va="center",
            fontsize=12,
            family="monospace",
            color="white" if status.available else INK,
        )
        axes.text(
            0.2,
            -line,
            "runs" if status.available else "no",
            va="center",
            fontsize=11,
            fontweight="bold" if status.available else "normal",
            color=INK,
        )
        why = textwrap.shorten(status.detail, 92, placeholder=" ...")
        axes.text(0.28, -line, why, va="center", fontsize=9, color=INK if status.available else FAINT)
    axes.set_xlim(0, 1.3)
    axes.set_ylim(-len(table) + 0.4, 0.6)
    bare(axes)
    return Picture(figure, "backends, the preferred first: " + ", ".join(status.name for status in table))
