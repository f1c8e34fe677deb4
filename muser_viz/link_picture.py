"""A picture of transfers over a link, side by side (§15.8)."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from muser_viz.checks import whole
from muser_viz.errors import InputError
from muser_viz.link import Transfer
from muser_viz.pictures import EMPTY, FAINT, FRONT, INK, WRITE, Picture

_SENDING = "#31688e"


def draw_link(transfers: Mapping[str, Transfer], end: int, before: int = 1_200) -> Picture:
    """Transfers on one axis of ticks, from ``before`` ticks ahead of ``end`` (of the prefill) on (§15.8).

    InputError without a transfer, or where a number is no whole number of at least 0.
    """
    if not transfers or not all(transfer.sent for transfer in transfers.values()):
        raise InputError("a transfer with nothing sent was given; give one or more that sent something")
    end, before = whole("end", end, 0), whole("before", before, 0)
    last = max(transfer.end for transfer in transfers.values()) - end
    figure = Figure(
        figsize=(8.6, 1.5 + 0.62 * len(transfers)), dpi=110, facecolor="white", layout="constrained"
    )
    axes = figure.subplots()
    lines = []
    for line, (name, transfer) in enumerate(transfers.items()):
        axes.barh(-line, before + last, 0.5, left=-before, color=EMPTY)
        for colour, parts in (
            (WRITE, [(one.begin, one.start) for one in transfer.sent]),
            (_SENDING, [(one.start, one.end) for one in transfer.sent]),
        ):
            shown = [(max(a - end, -before), b - end) for a, b in parts if b - end > -before and b > a]
            axes.broken_barh([(a, b - a) for a, b in shown], (-line - 0.25, 0.5), color=colour)
        after = transfer.end - end
        far = 2 * after > last
        axes.text(
            after if far else after + last / 100,
            -line + 0.29,
            f"{after:,}",
            ha="right" if far else "left",
            va="bottom",
            fontsize=9,
            color=INK,
        )
        wakes = f"{transfer.wakes:,} wake{'s' * (transfer.wakes != 1)}"
        axes.text(last * 1.04, -line, wakes, ha="left", va="center", fontsize=9.5, color=WRITE)
        ticks = f"{after:,} tick{'s' * (after != 1)}"
        lines.append(f"{name}: {wakes}, the last byte {ticks} after the prefill's end")
    axes.axvline(0, color=FRONT, lw=1.2)
    axes.text(-last / 100, 0.55, "prefill ends", ha="right", va="bottom", fontsize=9, color=FRONT)
    axes.set_yticks([-line for line in range(len(transfers))], list(transfers), fontsize=10)
    axes.set_ylim(0.4 - len(transfers), 0.95)
    axes.set_xlim(-before, last * 1.2)
    axes.set_xlabel("ticks from the end of the prefill", fontsize=9, color=FAINT)
    axes.tick_params(labelsize=8, axis="x")
    axes.tick_params(length=0, axis="y")
    for spine in axes.spines.values():
        spine.set_visible(False)
    names = ((_SENDING, "sending"), (WRITE, "waking"), (EMPTY, "nothing on the wire"))
    figure.legend(
        handles=[Patch(color=colour, label=label) for colour, label in names],
        loc="outside upper center",
        ncols=3,
        fontsize=9,
        frameon=False,
    )
    return Picture(figure, "\n".join(lines))
