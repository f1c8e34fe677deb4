"""What the ledger runs on rings, planes, kernels and the bill: each returns what was seen, in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from muser_viz.bill import footprint
from muser_viz.bits import differing
from muser_viz.devices.source import catalogue
from muser_viz.dispatches import fused_read
from muser_viz.errors import CacheDiscontinuity, ContextExhausted
from muser_viz.generation import StandInModel, generate
from muser_viz.geometry import Geometry, LayerKind
from muser_viz.inputs import seeded
from muser_viz.layout import Layout
from muser_viz.layout_cells import cells
from muser_viz.plane import KvPlane
from muser_viz.ring import Ring, spans
from muser_viz.store import KvStore


def yes(holds: object) -> str:
    """``yes`` or ``no``."""
    return "yes" if holds else "no"


def refusal(act: Callable[[], object], error: type[Exception]) -> bool:
    """Whether ``act`` raises ``error``."""
    try:
        act()
    except error:
        return True
    return False


def wrap_walk(g: Geometry) -> str:
    """Row and origins after the first tokens past a full ring."""
    ring = Ring(g.sliding_window)
    ring.append_batch(0, g.sliding_window)
    steps = []
    for _ in range(2):
        row = ring.append(ring.next_position)
        steps.append(f"row {row}, origins ({ring.origin_logical}, {ring.origin_physical})")
    return "; ".join(steps)


def filled_state(g: Geometry) -> str:
    """The bookkeeping of a ring that has just become full."""
    ring = Ring(g.sliding_window)
    ring.append_batch(0, g.sliding_window)
    return f"len {ring.len:,}, origins ({ring.origin_logical}, {ring.origin_physical})"


def skip_and_replay(_: Geometry) -> str:
    """Whether every position but the next is refused, with the ring unchanged."""
    ring = Ring(8)
    ring.append_batch(0, 11)
    before = ring.copy()
    others = [n for n in range(20) if n != ring.next_position]
    refused = all(refusal(partial(ring.append, n), CacheDiscontinuity) for n in others)
    return yes(refused and ring == before)


def never_wraps(_: Geometry) -> str:
    """Whether a growing plane keeps its origins at 0 to its last token, and the store refuses the next."""
    g = Geometry(n_layers=4, sliding_window=32, n_kv_heads=1, head_dim=2, context_limit=64, n_query_heads=1)
    store = KvStore(g, 40, "numpy")
    rows = np.ones((4, 40, 2), np.float32)
    store.append_batch(0, rows, rows)
    plane = store.planes[3]
    stays = (plane.len, plane.origin_logical, plane.origin_physical) == (40, 0, 0)
    return yes(stays and refusal(lambda: store.append(40, rows[:, 0], rows[:, 0]), ContextExhausted))


def chunk_overflow(g: Geometry) -> str:
    """What chunks that cross a full ring's boundary do to its origins."""
    ring = Ring(g.sliding_window)
    ring.append_batch(0, g.sliding_window - 248)
    reserved = ring.append_batch(ring.next_position, 512)
    moved = (ring.origin_logical, ring.origin_physical, reserved.source_count)
    return "origins advance by the overflow" if moved == (264, 264, 512) else f"{moved}"


def constant_from(g: Geometry) -> str:
    """From which context on the sliding planes cost the same."""
    most = footprint(g, g.context_limit).sliding_allocated
    first = next(n for n in range(1, g.context_limit + 1) if footprint(g, n).sliding_allocated == most)
    return f"from a context of {first:,} on"


def zero_filled(_: Geometry) -> str:
    """Whether a new plane, and one that was reset, hold zeros alone."""
    plane = KvPlane(4, 1, 2, backend="numpy")
    fresh = not (plane.raw_key().any() or plane.raw_value().any())
    plane.append_batch(0, np.ones((6, 2), np.float32), np.ones((6, 2), np.float32))
    plane.reset()
    return yes(fresh and not (plane.raw_key().any() or plane.raw_value().any()))


def rounds(_: Geometry) -> str:
    """What a store makes of 2,049, which no f16 is."""
    plane = KvPlane(1, 1, 1, backend="numpy")
    plane.append(0, np.array([2049], np.float32), np.array([2051], np.float32))
    return f"2,049 -> {plane.keys().item():,.0f}, 2,051 -> {plane.values().item():,.0f}"


def offsets(head_major: bool) -> str:
    """Whether a layout's formula is a bijection onto the buffer."""
    layout = Layout(5, 3, 4, head_major)
    found = sorted(layout.offset(row, element) for row in range(5) for element in range(12))
    return yes(found == list(range(60)))


def stride(g: Geometry, head_major: bool) -> str:
    """Halves from one row of a head to its next."""
    layout = Layout(4, g.n_kv_heads, g.head_dim, head_major)
    return f"{layout.offset(1, 0) - layout.offset(0, 0)}"


def table(name: str) -> str:
    """How many buffers a kernel has, by its file."""
    return f"buffers 0 to {len(catalogue()[name].buffers) - 1}"


def sees_positions(name: str) -> str:
    """Whether a kernel is handed a token position, by its file."""
    names = {parameter.name for parameter in catalogue()[name].buffers}
    return yes(names & {"start_position", "origin_logical"})


def fills(_: Geometry) -> str:
    """For how many states of a growing plane ``len < capacity`` holds, from empty to its last token."""
    g = Geometry(n_layers=4, sliding_window=32, n_kv_heads=1, head_dim=2, context_limit=64, n_query_heads=1)
    store = KvStore(g, 40, "numpy")
    plane = store.planes[3]
    below = [plane.len < plane.capacity]
    for token in range(store.max_context):
        store.append(token, np.ones((4, 2), np.float32), np.ones((4, 2), np.float32))
        below.append(plane.len < plane.capacity)
    if all(below):
        return "always"
    last = f"after token {below.index(False)} len is {plane.len}"
    return f"in {sum(below)} of {len(below)} states; {last} of {plane.capacity} rows"


def reservation_steps(_: Geometry) -> str:
    """The statements that a reservation takes: the fields set are seen, the rest is counted by hand."""
    taken = []
    for ring in (Ring(8, len=3), Ring(8, len=8)):
        before = (ring.len, ring.origin_logical, ring.origin_physical)
        ring.append(ring.next_position)
        after = (ring.len, ring.origin_logical, ring.origin_physical)
        fields = sum(a != b for a, b in zip(before, after, strict=True))
        taken.append(1 + fields + 1)  # the row, the fields that it sets, the return
    refusing, room = 3, 1  # the position expected, the test, the error; then the test of len
    total = refusing + room + sum(taken)
    below, at = taken
    return f"{total} statements: {refusing} refuse, {room} asks for room, {below} below capacity, {at} at it"


def writers(_: Geometry) -> str:
    """How many kernels of the catalogue write K and V rows and no more, and whether a fused read does too."""
    caches = {"key_cache", "value_cache"}
    kernels = [
        kernel
        for kernel in catalogue().values()
        if caches == {parameter.name for parameter in kernel.buffers if parameter.kind == "out"}
    ]
    plane = KvPlane(8, 1, 4, backend="numpy")
    plane.append_batch(0, seeded(1, 8, 4), seeded(2, 8, 4))
    key, value = plane.raw_key(), plane.raw_value()
    fused_read(key, value, plane.ring, seeded(3, 4), seeded(4, 4), seeded(5, 1, 4))
    fused = not np.array_equal(key, plane.raw_key()) and not np.array_equal(value, plane.raw_value())
    return f"{len(kernels)}{', and the fused read' if fused else ''}"


def _final_after(capacity: int, tokens: int, chunk: int) -> npt.NDArray[np.int64]:
    """The chunk after which each row of a plane is overwritten no more, counted from 1."""
    ring = Ring(capacity)
    written = np.zeros(capacity, np.int64)
    for number, first in enumerate(range(0, tokens, chunk), 1):
        reserved = ring.append_batch(first, min(chunk, tokens - first))
        row = ring.physical(first + reserved.source_first)
        for rows in spans(row, reserved.source_count, capacity):
            written[rows] = number
    return written


def ready_first(g: Geometry) -> str:
    """Which planes' rows are the first to be final in the handoff's prefill, in chunks of 512."""
    tokens, chunk = 130_814, 512
    ring, full = (_final_after(capacity, tokens, chunk) for capacity in (g.sliding_window, tokens))
    if ring.min() <= full.min():
        return "the rings"
    return (
        f"the full planes: rows final from chunk {full.min()} of {full.max()} on; "
        f"a ring's from chunk {ring.min()}, its last with chunk {ring.max()}"
    )


def filled_cells(g: Geometry) -> str:
    """The 2 x 2 of layout and class, and which of its cells hold planes of a store."""
    found = cells(KvStore(g, 32, "numpy"), 32)
    filled = ", ".join(f"{cell.kind.value} {cell.layout}" for cell in found if cell.planes)
    return f"{len(found)} cells; planes in {filled}"


def _stored(tokens: list[int]) -> tuple[KvPlane, ...]:
    """The planes of a small two-layer model after some tokens."""
    g = Geometry(n_layers=2, sliding_window=32, n_kv_heads=1, head_dim=4, context_limit=32, n_query_heads=1)
    model = StandInModel(g)
    planes = model.planes(32)
    model.extend(planes, tokens)
    return planes


def work_grows(_: Geometry) -> str:
    """How the K and V rows of a generation grow when its tokens double, without a store and with one."""
    g = Geometry(n_layers=2, sliding_window=32, n_kv_heads=1, head_dim=4, context_limit=32, n_query_heads=1)

    def rows(count: int, store: bool) -> int:
        return int(np.sum(generate(StandInModel(g), [1], count, store).kv_rows))

    without, kept = ([rows(count, store) for count in (6, 12)] for store in (False, True))
    grows = without[1] > 3 * without[0] and kept[1] < 2.5 * kept[0]
    return "n² against n" if grows else f"{without} against {kept}"


def depends_on_the_prefix(_: Geometry) -> str:
    """In which layers the last token's K changes when the first token does."""
    first, other = _stored([1, 2, 3, 4]), _stored([9, 2, 3, 4])
    changed = [
        bool(differing(a.keys()[:, -1], b.keys()[:, -1]).any()) for a, b in zip(first, other, strict=True)
    ]
    return f"that token alone in layer 0, the prefix in layer {changed.index(True)}"


def never_changes(_: Geometry) -> str:
    """Whether the rows of four tokens stay as they were when more tokens come."""
    short, long = _stored([1, 2, 3, 4]), _stored([1, 2, 3, 4, 5, 6, 7])
    same = [not differing(a.keys(), b.keys()[:, :4]).any() for a, b in zip(short, long, strict=True)]
    return yes(all(same))


def recompute(tokens: int) -> str:
    """Keys computed for the token after ``tokens``, without a store."""
    return f"{sum(1 for _ in range(tokens - 1)):,}"


def keys_seen(g: Geometry, position: int) -> str:
    """Keys that a sliding layer's query at a position sees."""
    ring = Ring(g.sliding_window)
    ring.append_batch(0, position + 1)
    return f"{ring.len:,}"


def share(g: Geometry, digits: int) -> str:
    """The full layers' part of a slot at the context limit, in per cent."""
    return f"{100 * footprint(g, g.context_limit).full_share:.{digits}f} %"


def handoff(g: Geometry, tokens: int) -> tuple[int, int]:
    """Bytes of the handoff: full layers' rows, then three ring groups."""
    row = footprint(g, g.context_limit).token_layer * len(g.full_layers)
    return tokens * row, len(g.sliding_layers) // len(g.full_layers) * g.sliding_window * row


def binary(count: int, unit: str) -> str:
    """A number of bytes in KiB, MiB or GiB, to the digits that say it exactly or to two."""
    value = count / 1024 ** {"KiB": 1, "MiB": 2, "GiB": 3}[unit]
    return f"{value:,.0f} {unit}" if math.isclose(value, round(value)) else f"{value:.2f} {unit}"


def counted(g: Geometry, kind: LayerKind) -> int:
    """Layers of a kind."""
    return sum(g.kind(layer) is kind for layer in range(g.n_layers))
