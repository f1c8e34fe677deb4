"""What the ledger runs to derive statements about behaviour: each returns what was seen, in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from muser_viz.bill import footprint
from muser_viz.bits import differing
from muser_viz.devices.source import catalogue
from muser_viz.errors import CacheDiscontinuity, ContextExhausted
from muser_viz.generation import StandInModel, generate
from muser_viz.geometry import Geometry, LayerKind
from muser_viz.inputs import seeded
from muser_viz.layout import Layout
from muser_viz.plane import KvPlane
from muser_viz.readers import attend
from muser_viz.ring import Ring
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


def rotated(head_major: bool = False) -> tuple[KvPlane, KvPlane, np.ndarray]:
    """One wrapped ring, the same rows packed at row 0, and a query."""
    plane = KvPlane(64, 1, 8, head_major, "numpy")
    plane.append_batch(0, seeded(1, 100, 8), seeded(2, 100, 8))
    return plane, KvPlane.restore(plane.snapshot(), 0, "numpy"), seeded(3, 2, 8)


def rotation_changes_bits(_: Geometry) -> str:
    """Whether the same rows in another rotation are read with other bits."""
    plane, packed, query = rotated()
    return yes(differing(attend(plane, query), attend(packed, query)).any())


def restore_replays(_: Geometry) -> str:
    """Whether a restore at the formula's rotation is read with the same bits."""
    plane, _packed, query = rotated()
    back = KvPlane.restore(plane.snapshot(), backend="numpy")
    return yes(not differing(attend(back, query), attend(plane, query)).any())


def restored_rows(head_major: bool) -> str:
    """Whether a restore puts logical row i at (rotation + i) % capacity."""
    plane, _packed, _query = rotated(head_major)
    back = KvPlane.restore(plane.snapshot(), backend="numpy")
    rotation = back.origin_logical % back.capacity
    rows = [back.physical(back.origin_logical + i) for i in range(back.len)]
    return yes(rows == [(rotation + i) % back.capacity for i in range(back.len)])


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


def modulus_parts(_: Geometry) -> str:
    """What a modulus of the position does on a ring restored at another rotation."""
    ring = Ring(8, len=8, origin_logical=5, origin_physical=2)
    row = ring.copy().append(13)
    aliased = ring.occupants()[13 % 8]
    return f"row {13 % 8} of 8, in bounds, holds live token {aliased}; the origins say row {row}"


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


def never_modulo_of_the_position(_: Geometry) -> str:
    """Whether no kernel takes a position modulo the capacity: rows follow the origins past a wrap."""
    plane = KvPlane.restore(rotated()[0].snapshot(), 7, "numpy")
    plane.append(100, *(seeded(4, 2, 8)))
    return yes(
        plane.physical(100) == 7 != 100 % 64
        and np.array_equal(plane.raw_key()[7], seeded(4, 2, 8)[0].astype(np.float16))
    )


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


def lost(g: Geometry, chunk: int) -> str:
    """Rows that the first and last query of an aligned chunk miss when it is stored before it is read."""
    ring = Ring(g.sliding_window)
    ring.append_batch(0, g.sliding_window)
    ring.append_batch(g.sliding_window, chunk)
    held = set(ring.occupants().tolist())

    def missed(position: int) -> int:
        return sum(n not in held for n in range(position - g.sliding_window + 1, position + 1))

    return f"first {missed(g.sliding_window):,}, last {missed(g.sliding_window + chunk - 1):,}"


def gate(_: Geometry) -> str:
    """Positions of the gate where a read in temporal order gives the ring's bits."""
    plane = KvPlane(2048, 1, 4)
    rows = seeded(1, 2050, 4), seeded(2, 2050, 4)
    query = seeded(3, 2, 4)
    equal = []
    done = 0
    for position in (1, 31, 32, 33, 2047, 2048, 2049):
        plane.append_batch(done, rows[0][done : position + 1], rows[1][done : position + 1])
        done = position + 1
        temporal = KvPlane.restore(plane.snapshot(), 0)
        same = not differing(attend(plane, query), attend(temporal, query)).any()
        equal.append(f"{position:,} {'equal' if same else 'other bits'}")
    return ", ".join(equal)
