"""How two sessions of a model part, drawn (§15.6, §15.10)."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import LogNorm

from muser_viz.model.runs import Spread
from muser_viz.pictures import INK, WRITE, Picture, blank_figure


def draw_spread(spread: Spread) -> Picture:
    """Above, the logits of each token that differ; below, the words of the row it stored, layer by layer.

    The text tells what holds on every machine, and no count: the counts are MLX's
    own bits.
    """
    count, layers = spread.rows.shape
    figure = blank_figure(8.6, 4.6)
    top, low = figure.subplots(2, 1, height_ratios=[1, 1.5], sharex=True)
    top.bar(np.arange(1, count + 1), spread.logits, width=1.0, color=WRITE)
    top.set_ylabel("logits that differ", fontsize=9)
    top.set_ylim(0, spread.vocab)
    shown = np.ma.masked_equal(spread.rows.T, 0)
    drawn = low.imshow(
        shown,
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        cmap="viridis",
        norm=LogNorm(1, spread.row_words),
        extent=(0.5, count + 0.5, -0.5, layers - 0.5),
    )
    low.set_facecolor("#f4f4f4")
    low.set_ylabel("layer", fontsize=9)
    low.set_xlabel("token after the restore", fontsize=9)
    low.set_yticks(range(0, layers, max(1, layers // 8)))
    bar = figure.colorbar(drawn, ax=low, pad=0.01)
    bar.set_label(f"K and V words, of {spread.row_words}", fontsize=8)
    for axes in (top, low):
        axes.tick_params(labelsize=8)
    title = f"Two sessions of one model, {count} tokens, {layers} layers"
    figure.suptitle(title, fontsize=11, color=INK)
    return Picture(figure, "\n".join([title, *sentences(spread)]))


def sentences(spread: Spread) -> list[str]:
    """What a Spread says without a count."""
    count, layers = spread.rows.shape
    same = spread.same_tokens
    agreed = spread.rows[: same + 1]
    tokens = f"all {count} tokens are the same"
    if same < count:
        tokens = f"token {same + 1} is the first that differs"
    if not spread.logits.any():
        return [tokens, "no logit differs", "no row differs"]
    still = [layer for layer in range(layers) if not agreed[:, layer].any()]
    rows = f"layers whose rows are equal as long as the tokens agree: {', '.join(map(str, still)) or 'none'}"
    first, rest = spread.rows[: count // 2].sum(), spread.rows[count // 2 :].sum()
    return [
        tokens,
        f"logits of the first token differ: {'yes' if spread.logits[0] else 'no'}",
        rows,
        f"more words of rows differ in the later half than in the earlier: {'yes' if rest > first else 'no'}",
    ]
