"""A store and its reader as dispatches, with a fence and without, and as one (§15.8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz import launches
from muser_viz.checks import floats, whole
from muser_viz.encodings import attend_rows
from muser_viz.errors import InputError
from muser_viz.plane import KvPlane
from muser_viz.ring import Ring

F16 = npt.NDArray[np.float16]
F32 = npt.NDArray[np.float32]
READ = "read"


@dataclass(frozen=True)
class Seen:
    """One order of the work, which KV heads' part of the row was stored by then, and what was read."""

    order: tuple[str, ...]
    stored: tuple[int, ...]
    read: F32


def orders(*segments: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Every order that fences allow: any within a segment, segments one after another (§15.8)."""
    for parts in product(*(permutations(segment) for segment in segments)):
        yield tuple(name for part in parts for name in part)


def seen(plane: KvPlane, key: Any, value: Any, query: Any, *, fence: bool) -> tuple[Seen, ...]:
    """The next token's store and the read after it, in every order that is allowed (§15.8).

    The store is cut by KV head, as threads of one dispatch may end at different
    times; each part is ``muser_kv_store_f16`` itself over one head of the row. With
    ``fence`` the read comes last; without, anywhere. Each order is run on purpose,
    on a copy of ``plane``, which is left as it was. ``key``, ``value``: f32,
    ``(kv_dim,)``; ``query`` as ``attend``. InputError for another shape or dtype, or
    a head-major plane.
    """
    if plane.head_major:
        raise InputError("the plane is head-major; muser_kv_store_f16 stores token-major rows: give a ring")
    key = floats("key", key, (plane.kv_dim,))
    value = floats("value", value, (plane.kv_dim,))
    query = floats("query", query, (None, plane.head_dim))
    if len(query) == 0 or len(query) % plane.n_kv_heads:
        raise InputError(f"query has {len(query)} heads; give a multiple of {plane.n_kv_heads} KV heads")
    stores = [f"store head {head}" for head in range(plane.n_kv_heads)]
    allowed = orders(stores, [READ]) if fence else orders([*stores, READ])
    return tuple(_run(plane, order, key, value, query) for order in allowed)


def _run(plane: KvPlane, order: tuple[str, ...], key: F32, value: F32, query: F32) -> Seen:
    copied = KvPlane.restore(plane.snapshot(), plane.origin_physical, plane.backend)
    device, ring = copied.device, copied.ring
    row = ring.append(ring.next_position)
    size, heads = copied.head_dim, copied.n_kv_heads
    stored: list[int] = []
    at_read: tuple[int, ...] = ()
    read: Any = None
    for name in order:
        if name == READ:
            scored = launches.scores(
                device, device.put(query), copied.key_cache, len(query), copied.layout, ring
            )
            weighted = launches.weights(device, scored, len(query), ring)
            first = np.zeros(1, np.uint32)
            mixed = launches.mix(device, weighted, copied.value_cache, first, len(query), copied.layout, ring)
            read = np.asarray(device.get(mixed)).reshape(query.shape)
            at_read = tuple(sorted(stored))
        else:
            head = int(name.rsplit(" ", 1)[1])
            part = slice(head * size, (head + 1) * size)
            caches = copied.key_cache, copied.value_cache
            launches.store(
                device, device.put(key[part]), device.put(value[part]), *caches, size, row * heads + head
            )
            stored.append(head)
    return Seen(order, at_read, read)


def fused_read(key_cache: F16, value_cache: F16, ring: Ring, key: Any, value: Any, query: Any) -> F32:
    """One dispatch that reads with the next token's row in hand, and stores it on the way (§15.8).

    ``key_cache``, ``value_cache``: f16 arrays ``(capacity, kv_dim)``, written in
    place; ``ring`` advances. A full ring only: f32, ``(n_query_heads, head_dim)``, with
    the bits of a store, a fence and a scan read. A stand-in in NumPy for what the
    engine's fallback route does in one kernel. InputError for another shape or dtype,
    or a ring that is not full.
    """
    whole("ring.len", ring.len, ring.capacity)
    kv_dim = key_cache.shape[1]
    rows = []
    for name, cache, given in (("key", key_cache, key), ("value", value_cache, value)):
        if cache.dtype != np.float16 or cache.shape != (ring.capacity, kv_dim):
            raise InputError(
                f"{name}_cache is {cache.dtype} of shape {cache.shape}; give f16 (capacity, kv_dim)"
            )
        with np.errstate(over="ignore"):
            rows.append(floats(name, given, (kv_dim,)).astype(np.float16))
    row = ring.origin_physical
    keys, values = key_cache.astype(np.float32), value_cache.astype(np.float32)
    keys[row], values[row] = rows
    read = attend_rows(keys, values, query)
    key_cache[row], value_cache[row] = rows
    ring.append(ring.next_position)
    return read
