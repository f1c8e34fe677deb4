"""What a chunk needs beside its ring, and what its queries lose without it (§15.9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from muser_viz import launches
from muser_viz.checks import floats, span, whole
from muser_viz.errors import CacheDiscontinuity, NotLive
from muser_viz.plane import F16, KvPlane
from muser_viz.readers import F32, scores
from muser_viz.ring import Ring
from muser_viz.snapshot import PlaneSnapshot

if TYPE_CHECKING:
    from muser_viz.pictures import Picture


def staged_span(position: int, count: int, capacity: int = 2048) -> range:
    """The tokens that the queries of a chunk see between them (§15.9).

    The query at ``p`` sees ``max(0, p - capacity + 1)`` to ``p``; the chunk is
    ``count`` tokens from ``position``. Its length is the rows of a staging
    buffer. InputError for a chunk of no token, or where one is no position.
    """
    position, count = span(position, whole("count", count, 1))
    capacity = whole("capacity", capacity, 1)
    return range(max(0, position - capacity + 1), position + count)


def rows_lost(position: int, count: int, capacity: int = 2048) -> npt.NDArray[np.int64]:
    """Rows that each query of a chunk no longer finds in the ring: int64, ``(count,)`` (§15.9).

    The ring took the tokens from 0 on and then the whole chunk, before any of
    its queries read. A row that a query sees and the ring no longer holds is
    lost to it. Errors as ``staged_span``.
    """
    tokens = staged_span(position, count, capacity)
    query = np.arange(tokens.stop - count, tokens.stop, dtype=np.int64)
    first_seen = np.maximum(0, query - capacity + 1)
    first_held = max(0, tokens.stop - capacity)
    return np.asarray(np.clip(first_held - first_seen, 0, query - first_seen + 1))


@dataclass(frozen=True)
class Staged:
    """Rows in temporal order, apart from the ring: f16, ``(n_kv_heads, len(tokens), head_dim)`` (§15.9).

    ``queries`` are the chunk's tokens, ``tokens`` those that they see.
    """

    tokens: range
    queries: range
    keys: F16
    values: F16
    capacity: int
    backend: str

    def window(self, token: int, rotation: int = 0) -> KvPlane:
        """The rows that a query of the chunk sees, as a plane with the first of them at ``rotation``.

        At 0 they lie in temporal order. NotLive for a token that is no query of
        this chunk; InputError for a rotation outside ``0 .. capacity - 1``.
        """
        token = whole("token", token, 0)
        if token not in self.queries:
            raise NotLive(
                f"token {token} was asked for; queries {self.queries.start} to {self.queries.stop - 1} "
                "are staged: ask for one of them"
            )
        first = max(0, token - self.capacity + 1)
        rows = slice(first - self.tokens.start, token + 1 - self.tokens.start)
        snapshot = PlaneSnapshot(
            self.keys[:, rows],
            self.values[:, rows],
            capacity=self.capacity,
            origin_logical=first,
            head_major=False,
        )
        return KvPlane.restore(snapshot, rotation, self.backend)


def stage(plane: KvPlane, position: int, keys: Any, values: Any) -> Staged:
    """Copy what a chunk's queries see of a ring, with the chunk after it; the ring is not changed (§15.9).

    ``keys`` and ``values``: f32, ``(n, kv_dim)``, as ``append_batch``. The ring's
    rows are copied bit for bit, the chunk's are rounded by the batch store
    kernel. CacheDiscontinuity unless ``position == plane.next_position``;
    InputError for another shape or dtype, or an empty chunk.
    """
    keys = floats("keys", keys, (None, plane.kv_dim))
    values = floats("values", values, keys.shape)
    tokens = staged_span(position, len(keys), plane.capacity)
    if position != plane.next_position:
        raise CacheDiscontinuity(None, plane.next_position, position)
    chunk = KvPlane(len(keys), plane.n_kv_heads, plane.head_dim, backend=plane.backend)
    chunk.append_batch(0, keys, values)
    seen_before = slice(tokens.start - plane.origin_logical, None)
    return Staged(
        tokens,
        range(tokens.stop - len(keys), tokens.stop),
        np.concatenate([plane.keys()[:, seen_before], chunk.keys()], axis=1),
        np.concatenate([plane.values()[:, seen_before], chunk.values()], axis=1),
        plane.capacity,
        plane.backend,
    )


def attend_from_front(plane: KvPlane, query: Any) -> F32:
    """What the scan reader gives where it begins at the front of the window: f32, as ``attend`` (§15.9).

    The rows are read where they lie, no copy is made; they are summed in
    temporal order instead of physical. Errors as ``attend``.
    """
    scored = scores(plane, query)
    device, ring, layout = plane.device, plane.ring, plane.layout
    heads = len(scored)
    live_rows = np.flatnonzero(ring.occupants() >= 0)
    front = np.searchsorted(live_rows, [ring.origin_physical]).astype(np.uint32)
    weighted = launches.weights(device, device.put(scored), heads, ring)
    read = launches.mix(device, weighted, plane.value_cache, front, heads, layout, ring)
    return np.asarray(device.get(read)).reshape(heads, plane.head_dim)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _tokens(first: int, last: int) -> str:
    return f"token {first:,}" if first == last else f"tokens {first:,} to {last:,}"


def staging_sentence(
    position: int, count: int, capacity: int = 2048, query: int = 0, staged: bool = False
) -> str:
    """What the chunk's ``query``-th query finds of what it sees, stored first or staged (§15.9).

    Errors as ``staged_span``; InputError for a query outside ``0 .. count - 1``.
    """
    tokens = staged_span(position, count, capacity)
    at = position + whole("query", query, 0, count - 1)
    first = max(0, at - capacity + 1)
    lost = rows_lost(position, count, capacity)
    gone = int(lost[query])
    seen = f"query {at:,} sees {_tokens(first, at)}, {_counted(at - first + 1, 'row', 'rows')}"
    rows = f"{_counted(len(tokens), 'row', 'rows')}, {_tokens(tokens.start, tokens.stop - 1)}"
    if staged:
        return (
            f"staged ({rows}): {seen}, and finds them all in staged rows "
            f"{first - tokens.start:,} to {at - tokens.start:,}; nothing is lost"
        )
    which = f" ({_tokens(first, first + gone - 1)})" if gone else ""
    return (
        f"stored first: {seen}, and {_counted(gone, 'of them is', 'of them are')} lost{which}; "
        f"{int(lost.sum()):,} over all {count:,} queries; to lose none, stage {rows}"
    )


def draw_staging(
    position: int, count: int, capacity: int = 2048, query: int = 0, staged: bool = False
) -> Picture:
    """Window, chunk, ring and staged span over the tokens; below, rows lost by query (§15.9).

    The ring took the tokens from 0 on. ``query``, from 0 on, is the chunk's query
    whose rows are marked; ``staged`` says whether it reads the staged rows or the
    ring that took the chunk first. Errors as ``staging_sentence``.
    """

    from muser_viz.pictures import EMPTY, FAINT, FRONT, INK, WRITE, Picture, blank_figure

    sentence = staging_sentence(position, count, capacity, query, staged)
    span_seen = staged_span(position, count, capacity)
    lost = rows_lost(position, count, capacity)
    before, after = Ring(capacity), Ring(capacity)
    before.append_batch(0, position)
    after.append_batch(0, span_seen.stop)
    last, at = span_seen.stop - 1, position + query
    bars = [
        ("ring before", range(before.origin_logical, position), EMPTY),
        ("chunk", range(position, span_seen.stop), "#9fc5d8"),
        ("ring after", range(after.origin_logical, span_seen.stop), EMPTY),
        (f"query {at:,} sees", range(max(0, at - capacity + 1), at + 1), "#f3d7a8"),
        (f"query {last:,} sees", range(max(0, last - capacity + 1), span_seen.stop), "#f3d7a8"),
        ("staged", span_seen, "#b7d8a8"),
    ]
    if at == last:
        del bars[3]
    figure = blank_figure(8.6, 5.2)
    top, low = figure.subplots(2, 1, height_ratios=[1.25, 1])
    gone, total = 0 if staged else int(lost[query]), len(span_seen)
    lines = []
    for line, (name, tokens, colour) in enumerate(bars):
        rows = f": {_counted(len(tokens), 'row', 'rows')}" if tokens else ""
        which = _tokens(tokens.start, tokens.stop - 1) if tokens else "empty"
        lines.append(f"{name}: {which}{rows}")
        held = which.removeprefix("tokens ") + rows
        top.barh(-line, len(tokens), 0.72, left=tokens.start, color=colour, edgecolor=FAINT, linewidth=0.6)
        if line == 3 and gone:
            lost_bar = {"color": "none", "edgecolor": WRITE, "hatch": "////", "linewidth": 1}
            top.barh(-line, gone, 0.72, left=tokens.start, **lost_bar)
            held += f", {gone:,} lost"
        middle, side = (tokens.start + tokens.stop) / 2, "center"
        if len(tokens) < 0.3 * total:
            outside = 0.01 * total
            right = tokens.start - span_seen.start < 0.3 * total
            middle, side = (tokens.stop + outside, "left") if right else (tokens.start - outside, "right")
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.2, "alpha": 0.8}
        top.text(middle, -line, held, ha=side, va="center", fontsize=8.5, color=INK, bbox=box)
    top.axvline(position, color=FRONT, lw=1.2)
    top.set_yticks([-line for line in range(len(bars))], [name for name, _, _ in bars], fontsize=9)
    top.set_xlabel("token", fontsize=9)
    one = "o" if count == 1 else ""
    low.plot(
        position + np.arange(count),
        lost,
        "-" + one,
        color=WRITE,
        lw=2,
        label="stored first, read from the ring",
    )
    low.axhline(0, color="#3b7d23", lw=2, ls="--", label="read from the staged rows")
    low.plot([at], [gone], "D", color=INK, ms=6, label=f"query {at:,}: {gone:,} lost")
    if not lost.any():
        low.set_ylim(-0.05, 1)
    low.set_xlabel("query", fontsize=9)
    low.set_ylabel("rows lost", fontsize=9)
    low.legend(fontsize=8.5, frameon=False)
    for axes in (top, low):
        axes.tick_params(labelsize=8.5)
        axes.spines[["top", "right"]].set_visible(False)
    title = f"A chunk of {_counted(count, 'token', 'tokens')} at {position:,}, a ring of {capacity:,} rows"
    figure.suptitle(title, fontsize=11, color=INK)
    ends = f"{int(lost[0]):,} to query {position:,}, {int(lost[-1]):,} to query {last:,}"
    summary = f"rows lost: {ends}, 0 once staged"
    return Picture(figure, "\n".join([title, *lines, summary, sentence]))
