"""One function a kernel: its buffer table filled from a layout and a ring (§15.4, §15.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz.devices.protocol import Buffer, Device, Fresh
from muser_viz.layout import Layout
from muser_viz.ring import Reservation, Ring

GROUP = 16
"""Dims that one thread of the mix kernel sums."""


def store(
    device: Device, key: Any, value: Any, key_cache: Buffer, value_cache: Buffer, kv_dim: int, row: int
) -> None:
    """One token-major row: ``muser_kv_store_f16``."""
    device.launch("muser_kv_store_f16", kv_dim, [key, value, key_cache, value_cache, kv_dim, row])


def store_batch(
    device: Device,
    keys: Any,
    values: Any,
    key_cache: Buffer,
    value_cache: Buffer,
    layout: Layout,
    reserved: Reservation,
) -> None:
    """The live rows of a chunk, either layout: ``muser_kv_store_batch_f16``."""
    if reserved.source_count == 0:
        return
    device.launch(
        "muser_kv_store_batch_f16",
        reserved.source_count * layout.kv_dim,
        [
            keys,
            values,
            key_cache,
            value_cache,
            layout.kv_dim,
            reserved.source_first,
            reserved.source_count,
            reserved.start_position,
            layout.capacity,
            reserved.origin_logical,
            reserved.origin_physical,
            layout.head_dim,
            int(layout.head_major),
        ],
    )


def _live_rows(ring: Ring) -> list[int]:
    """rows, low_rows, gap: where live row ``i`` lies, in ascending physical order."""
    wrapped = max(0, ring.origin_physical + ring.len - ring.capacity)
    gap = ring.capacity - ring.len if wrapped else ring.origin_physical
    return [ring.len, wrapped, gap]


def _heads(n_query_heads: int, layout: Layout) -> list[int]:
    return [n_query_heads, layout.n_kv_heads, layout.head_dim, layout.capacity, int(layout.head_major)]


def scores(
    device: Device, query: Any, key_cache: Buffer, n_query_heads: int, layout: Layout, ring: Ring
) -> Any:
    """Scaled q.k of every live row, in ascending physical order: f32, (heads, len)."""
    scale = float(np.float32(layout.head_dim**-0.5))
    arguments = [query, key_cache, Fresh((n_query_heads, ring.len)), *_heads(n_query_heads, layout)]
    return device.launch(
        "muser_scores_f32", n_query_heads * ring.len, [*arguments, *_live_rows(ring), scale]
    )[0]


def weights(device: Device, scored: Any, n_query_heads: int, ring: Ring) -> Any:
    """exp(score - the head's largest): f32, (heads, len)."""
    fresh = Fresh((n_query_heads, ring.len))
    return device.launch("muser_weights_f32", n_query_heads, [scored, fresh, n_query_heads, ring.len])[0]


def mix(
    device: Device,
    weighted: Any,
    value_cache: Buffer,
    starts: npt.NDArray[np.uint32],
    n_query_heads: int,
    layout: Layout,
    ring: Ring,
) -> Any:
    """Softmax sum and P.V from each of ``starts``: f32, (orders, heads, head_dim)."""
    orders = starts.size
    groups = -(-layout.head_dim // GROUP)
    fresh = Fresh((orders, n_query_heads, layout.head_dim))
    return device.launch(
        "muser_mix_f32",
        orders * n_query_heads * groups,
        [
            weighted,
            value_cache,
            device.put(starts),
            fresh,
            orders,
            *_heads(n_query_heads, layout),
            *_live_rows(ring),
        ],
    )[0]


def lanes(
    device: Device, scored: Any, value_cache: Buffer, n_query_heads: int, layout: Layout, ring: Ring
) -> Any:
    """The 32-lane reader on scores: f32, (heads, head_dim)."""
    fresh = Fresh((n_query_heads, layout.head_dim))
    return device.launch(
        "muser_lanes_f32",
        n_query_heads * layout.head_dim,
        [scored, value_cache, fresh, *_heads(n_query_heads, layout), *_live_rows(ring)],
    )[0]


def project(device: Device, attended: Any, n_inputs: int, vocab: int, seed: int) -> Any:
    """Stand-in logits: f32, (vocab,)."""
    return device.launch("muser_project_f32", vocab, [attended, Fresh((vocab,)), n_inputs, vocab, seed])[0]
