"""Does a backend give NumPy's bits? Chained stores and reads, each fed by the last (§15.4, §15.8)."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz import devices, launches
from muser_viz.checks import whole
from muser_viz.devices.protocol import Device
from muser_viz.inputs import seeded
from muser_viz.layout import Layout
from muser_viz.plane import KvPlane
from muser_viz.readers import attend
from muser_viz.ring import Ring

STEPS = 2000
_LAYOUT = {"capacity": 24, "n_kv_heads": 2, "head_dim": 6}


def _chain(device: Device, layout: Layout, steps: int) -> Generator[None, None, npt.NDArray[Any]]:
    """Store, read, store what was read, ...: yields a step, returns the bytes of the end state.

    Nothing leaves the device on the way, so a store that a reader overtakes, or
    a read that a later store overtakes, changes every word that follows.
    """
    empty = np.zeros(layout.shape, np.float16)
    caches = key_cache, value_cache = device.buffer(empty), device.buffer(empty)
    ring = Ring(layout.capacity)
    query = device.put(seeded(1, layout.n_kv_heads, layout.head_dim))
    row = device.put(seeded(2, layout.kv_dim))
    chunks = [device.put(seeded(3 + i, 5, layout.kv_dim)) for i in range(8)]
    handed: list[Any] = []
    for step in range(steps):
        if step % 7 == 3:
            chunk = chunks[step // 7 % len(chunks)]
            reserved = ring.append_batch(ring.next_position, 5)
            launches.store_batch(device, chunk, chunk, key_cache, value_cache, layout, reserved)
        elif step % 7 == 5:
            write_index = ring.append(ring.next_position)
            wanted = launches.Handed(ring.live_spans())
            handed = launches.store_rows(device, (row, row), caches, layout, wanted, write_index)
        elif layout.head_major:
            reserved = ring.append_batch(ring.next_position, 1)
            launches.store_batch(device, row, row, key_cache, value_cache, layout, reserved)
        else:
            write_index = ring.append(ring.next_position)
            launches.store(device, row, row, key_cache, value_cache, layout.kv_dim, write_index)
        scored = launches.scores(device, query, key_cache, layout.n_kv_heads, layout, ring)
        weighted = launches.weights(device, scored, layout.n_kv_heads, ring)
        first = np.zeros(1, np.uint32)
        row = launches.mix(device, weighted, value_cache, first, layout.n_kv_heads, layout, ring)
        yield
    lanes = launches.lanes(device, scored, value_cache, layout.n_kv_heads, layout, ring)
    logits = launches.project(device, row, layout.kv_dim, 64, steps)
    wanted = launches.Handed(ring.live_spans(), chunk=5)
    handed += launches.rows(device, (chunks[0], chunks[1]), caches, layout, wanted)
    parts = [device.get(array) for array in (key_cache, value_cache, row, lanes, logits, *handed)]
    return np.concatenate([part.reshape(-1).view(np.uint8) for part in parts])


def run(name: str, head_major: bool, steps: int = STEPS) -> Generator[None, None, str]:
    """Run the chain on a backend and in NumPy: yields a step, returns "" or what differed."""
    layout = Layout(head_major=head_major, **_LAYOUT)
    found = yield from _chain(devices.device(name), layout, steps)
    wanted = yield from _chain(devices.device("numpy"), layout, steps)
    wrong = int((found != wanted).sum())
    return f"{wrong} of {wanted.size} bytes differ from NumPy's" if wrong else ""


def scan_digest(backend: str | None = None, rotations: int = 64) -> str:
    """SHA-256 of what the scan reader gives at ``rotations`` rotations of one full ring (§15.6).

    A token-major ring of 2,048 rows, 2 KV heads of 128, filled past its wrap and
    restored at evenly spaced rotations; 32 query heads. The same on every backend
    and machine. InputError for rotations outside ``1 .. 2048``.
    """
    rotations = whole("rotations", rotations, 1, 2048)
    plane = KvPlane(2048, backend=backend)
    plane.append_batch(0, seeded(1, 3000, plane.kv_dim), seeded(2, 3000, plane.kv_dim))
    snapshot, query = plane.snapshot(), seeded(3, 32, plane.head_dim) * np.float32(0.25)
    digest = hashlib.sha256()
    for turn in range(rotations):
        restored = KvPlane.restore(snapshot, 2048 * turn // rotations, backend)
        digest.update(attend(restored, query).tobytes())
    return digest.hexdigest()
