"""What the ledger runs on rotations, wrong rows and staging: what attention then reads, in words."""

from __future__ import annotations

from copy import copy

import numpy as np

from muser_viz.bits import differing
from muser_viz.dispatches import fused_read
from muser_viz.encodings import attend_rows
from muser_viz.geometry import Geometry
from muser_viz.hazards import ModuloPlane
from muser_viz.inputs import seeded
from muser_viz.ledger.runs import yes
from muser_viz.plane import KvPlane
from muser_viz.readers import attend, stand_in_logits, sweep_rotations
from muser_viz.ring import Ring
from muser_viz.staging import stage

_KEYS, _VALUES = seeded(1, 128, 8), seeded(2, 128, 8)


def rotated(head_major: bool = False) -> tuple[KvPlane, KvPlane, np.ndarray]:
    """One wrapped ring, the same rows packed at row 0, and a query."""
    plane = KvPlane(64, 1, 8, head_major, "numpy")
    plane.append_batch(0, seeded(1, 100, 8), seeded(2, 100, 8))
    return plane, KvPlane.restore(plane.snapshot(), 0, "numpy"), seeded(3, 2, 8)


def rotation_changes_bits(_: Geometry) -> str:
    """Whether the same rows in another rotation are read with other bits."""
    plane, packed, query = rotated()
    return yes(differing(attend(plane, query), attend(packed, query)).any())


def logits_of_rotations(_: Geometry) -> str:
    """At how many of the other rotations of one ring the logits have other bits, by the data in it."""
    query = seeded(3, 2, 8)
    whole_numbers = np.rint(4 * _VALUES[:100])
    seen = []
    for name, keys, values, scale in (
        ("flat scores", _KEYS[:100], _VALUES[:100], 1),
        ("peaked ones", _KEYS[:100], _VALUES[:100], 64),
        ("exact sums", np.ones_like(whole_numbers), whole_numbers, 1),
    ):
        plane = KvPlane(64, 1, 8)
        plane.append_batch(0, keys, values)
        swept = sweep_rotations(plane, query * np.float32(scale))
        logits = [stand_in_logits(read, 64) for read in swept]
        own = logits[plane.origin_physical]
        seen.append((name, sum(bool(differing(each, own).any()) for each in logits)))
    if all(count == 63 for _, count in seen):
        return "always"
    return "at " + ", ".join(f"{count} ({name})" for name, count in seen) + " of 63 other rotations"


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


def what_travels(_: Geometry) -> str:
    """What a snapshot carries beside its rows, and whether the rotation follows from it."""
    plane = KvPlane(8, 1, 8, backend="numpy")
    lengths = range(1, 41)
    follows = 0
    for length in lengths:
        plane.append(length - 1, _KEYS[length], _VALUES[length])
        snapshot = plane.snapshot()
        follows += snapshot.origin_logical % snapshot.capacity == plane.origin_physical
    carried = [name for name in ("origin_logical", "origin_physical") if name in vars(snapshot)]
    return f"{', '.join(carried)}; the rotation follows from it at {follows} of {len(lengths)} lengths"


def elsewhere(kind: type[KvPlane] = KvPlane) -> KvPlane:
    """Lesson 02's case: 8 rows with tokens 5 to 12, restored from row 0 on."""
    source = KvPlane(8, 1, 8, backend="numpy")
    source.append_batch(0, _KEYS[:13], _VALUES[:13])
    return kind.restore(source.snapshot(), 0, "numpy")


def modulus_parts(_: Geometry) -> str:
    """What a modulus of the position does on a ring restored at another rotation."""
    plane = elsewhere()
    modulus, held = 13 % plane.capacity, plane.occupants()
    row = plane.append(13, _KEYS[13], _VALUES[13])
    inside = "in bounds" if modulus < plane.capacity else "out of bounds"
    lies = f"row {modulus} of {plane.capacity}, {inside}, holds live token {held[modulus]}"
    return f"{lies}; the origins say row {row}"


def wrong_row(_: Geometry) -> str:
    """Which tokens' K attention meets after one store to a wrong row of a full ring."""
    right, wrong = elsewhere(), elsewhere(ModuloPlane)
    for plane in (right, wrong):
        plane.append(13, _KEYS[13], _VALUES[13])
    token_of = {row.tobytes(): token for token, row in enumerate(_KEYS.astype(np.float16))}
    met = {token_of[row.tobytes()] for row in wrong.raw_key()}
    live = set(range(wrong.origin_logical, wrong.next_position))
    query = seeded(3, 1, 8)
    if not differing(attend(wrong, query), attend(right, query)).any():
        return "the same bits"
    dropped, stale = (", ".join(map(str, sorted(tokens))) for tokens in (live - met, met - live))
    return f"live token {dropped} is dropped, token {stale} is kept after it has left the window"


def never_modulo_of_the_position(_: Geometry) -> str:
    """Whether no kernel takes a position modulo the capacity: rows follow the origins past a wrap."""
    plane = KvPlane.restore(rotated()[0].snapshot(), 7, "numpy")
    plane.append(100, *(seeded(4, 2, 8)))
    return yes(
        plane.physical(100) == 7 != 100 % 64
        and np.array_equal(plane.raw_key()[7], seeded(4, 2, 8)[0].astype(np.float16))
    )


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


def without_dispatches(_: Geometry) -> str:
    """Whether what a chunk's first query reads changes without staging, or with store and read in one."""
    query = seeded(3, 1, 8)
    ring = KvPlane(32, 1, 8, backend="numpy")
    ring.append_batch(0, _KEYS[:40], _VALUES[:40])
    one_by_one, unstaged = copy(ring), copy(ring)
    one_by_one.append(40, _KEYS[40], _VALUES[40])
    right = attend(one_by_one, query)

    staged = stage(ring, 40, _KEYS[40:48], _VALUES[40:48])
    window = staged.window(40, one_by_one.origin_physical)
    if differing(attend(window, query), right).any():
        return "staging itself changes a word"
    unstaged.append_batch(40, _KEYS[40:48], _VALUES[40:48])
    held = np.flatnonzero(unstaged.occupants() <= 40)
    keys, values = (rows[held].astype(np.float32) for rows in (unstaged.raw_key(), unstaged.raw_value()))
    lost = differing(attend_rows(keys, values, query), right).any()
    fused = differing(
        fused_read(ring.raw_key(), ring.raw_value(), ring.ring, _KEYS[40], _VALUES[40], query), right
    ).any()
    say = ("would not change", "would change")
    return f"staging: {say[bool(lost)]}; the split, fused into one: {say[bool(fused)]}"
