"""The work for each token, with a store and without one, drawn (§15.1)."""

from __future__ import annotations

from muser_viz.errors import InputError
from muser_viz.generation import Generation
from muser_viz.pictures import INK, WRITE, Picture, blank_figure

_KEPT = "#31688e"


def draw_work(kept: Generation, recomputed: Generation) -> Picture:
    """K and V rows projected and keys scored for each token, all layers, both ways (§15.1).

    ``kept`` was generated with a store, ``recomputed`` without one. InputError
    where they have not the same number of tokens.
    """
    count = len(kept.tokens)
    if count != len(recomputed.tokens):
        raise InputError(
            f"{count} and {len(recomputed.tokens)} tokens were generated; draw two runs of one length"
        )
    figure = blank_figure(8.6, 3.9)
    parts = (
        ("K/V rows projected", kept.kv_rows.sum(axis=1), recomputed.kv_rows.sum(axis=1)),
        ("keys scored", kept.keys_scored.sum(axis=1), recomputed.keys_scored.sum(axis=1)),
    )
    lines = [f"work for each of {count:,} tokens, all layers"]
    token = range(1, count + 1)
    for axes, (name, with_store, without) in zip(figure.subplots(1, 2), parts, strict=True):
        for counts, label, colour, mark in (
            (without, "no store", WRITE, "s-"),
            (with_store, "store", _KEPT, "o-"),
        ):
            axes.plot(token, counts, mark, color=colour, ms=3.5, lw=1.2)
            axes.annotate(
                f"{label}: {counts[-1]:,}",
                (count, counts[-1]),
                (-8, 8),
                textcoords="offset points",
                ha="right",
                color=colour,
                fontsize=10,
            )
        axes.set_title(f"{name} for this token", fontsize=10.5, color=INK)
        axes.set_xlabel("token", fontsize=9)
        axes.set_ylim(0, 1.18 * max(without.max(), with_store.max()))
        axes.tick_params(labelsize=8)
        axes.grid(color="#eeeeee")
        shown = sorted({0, count // 4 - 1, count // 2 - 1, count - 1} & set(range(count)))
        lines.append(f"{name} for token {', '.join(f'{i + 1:,}' for i in shown)}")
        for label, counts in (("with a store", with_store), ("without", without)):
            lines.append(
                f"  {label}: {', '.join(f'{counts[i]:,}' for i in shown)}; {counts.sum():,} for all tokens"
            )
    figure.suptitle(lines[0], fontsize=11, color=INK)
    return Picture(figure, "\n".join(lines))
