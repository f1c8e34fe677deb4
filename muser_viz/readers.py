"""What attention reads from a plane, summed in physical order (§15.6)."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from muser_viz import devices, launches
from muser_viz.checks import POSITION_LIMIT, floats, whole
from muser_viz.errors import BackendUnavailable, InputError, NotLive
from muser_viz.plane import KvPlane

Reader = Literal["scan", "lanes", "mlx"]
F32 = npt.NDArray[np.float32]


def _query(plane: KvPlane, query: Any) -> tuple[F32, int]:
    query = floats("query", query, (None, plane.head_dim))
    heads = query.shape[0]
    if heads == 0 or heads % plane.n_kv_heads:
        raise InputError(
            f"query has {heads} heads; give a multiple of the plane's {plane.n_kv_heads} KV heads"
        )
    if heads * max(plane.len, plane.head_dim) >= POSITION_LIMIT:
        raise InputError(f"{heads} query heads over {plane.len} rows are 2**32 scores or more: ask for fewer")
    if plane.len == 0:
        raise NotLive("the plane holds no token; append one before attention reads it")
    return query, heads


def scores(plane: KvPlane, query: Any) -> F32:
    """Scaled q.k of every live row, in ascending physical order: f32, ``(n_query_heads, len)``.

    A row's score does not depend on where it lies: another rotation gives the
    same words in another order (§15.6). ``query`` and errors as ``attend``.
    """
    query, heads = _query(plane, query)
    device = plane.device
    return np.asarray(
        device.get(
            launches.scores(device, device.put(query), plane.key_cache, heads, plane.layout, plane.ring)
        )
    )


def attend(plane: KvPlane, query: Any, reader: Reader = "scan") -> F32:
    """Attention of one position over a plane's live rows: f32, ``(n_query_heads, head_dim)`` (§15.6).

    ``query``: f32, same shape; head ``h`` reads KV head ``h // (n_query_heads //
    n_kv_heads)``, scaled by ``head_dim ** -0.5``. Rows are read in ascending
    physical order. ``"scan"`` sums them one after another, with the same bits on
    every backend where all values are finite; ``"lanes"`` deals them to 32 lanes and merges these; ``"mlx"``
    is ``mx.fast.scaled_dot_product_attention`` in f32, whose bits are the
    machine's own. InputError for another shape, dtype or reader; NotLive for an
    empty plane; BackendUnavailable where ``"mlx"`` is asked for without MLX.
    """
    query, heads = _query(plane, query)
    if reader not in get_args(Reader):
        raise InputError(f"reader {reader!r} was asked for; there are {', '.join(get_args(Reader))}")
    if reader == "mlx":
        return _mlx(plane, query)
    device, ring, layout = plane.device, plane.ring, plane.layout
    scored = launches.scores(device, device.put(query), plane.key_cache, heads, layout, ring)
    if reader == "lanes":
        read = launches.lanes(device, scored, plane.value_cache, heads, layout, ring)
    else:
        weighted = launches.weights(device, scored, heads, ring)
        first = np.zeros(1, np.uint32)
        read = launches.mix(device, weighted, plane.value_cache, first, heads, layout, ring)
    return np.asarray(device.get(read)).reshape(query.shape)


def sweep_rotations(plane: KvPlane, query: Any) -> F32:
    """What ``attend`` gives at every rotation of a full ring: f32, ``(capacity, heads, head_dim)``.

    Row ``r`` has the bits of ``attend(KvPlane.restore(plane.snapshot(), rotation=r),
    query)``: the same weights, summed from another row on, in one launch (§15.6).
    InputError where the ring is not full; else as ``attend``.
    """
    query, heads = _query(plane, query)
    if plane.len < plane.capacity:
        raise InputError(
            f"{plane.len} of {plane.capacity} rows are live; a sweep turns a full ring: fill it first"
        )
    if plane.capacity * query.size >= POSITION_LIMIT:
        raise InputError(
            f"{plane.capacity} rotations of {query.size} words are 2**32 or more: sweep fewer heads"
        )
    device, ring, layout = plane.device, plane.ring, plane.layout
    scored = launches.scores(device, device.put(query), plane.key_cache, heads, layout, ring)
    weighted = launches.weights(device, scored, heads, ring)
    rotations = np.arange(plane.capacity)
    starts = ((ring.origin_physical - rotations) % plane.capacity).astype(np.uint32)
    return np.asarray(
        device.get(launches.mix(device, weighted, plane.value_cache, starts, heads, layout, ring))
    )


def stand_in_logits(attended: Any, vocab: int = 4096, seed: int = 0) -> F32:
    """Logits without a model: a seeded projection of what attention read: f32, ``(vocab,)`` (§15.6).

    ``attended``: f32, ``(n_query_heads, head_dim)``. The weights are made from
    ``seed`` (0 to 2**32 - 1), not learned. Summed in a fixed order: the same
    bits on every backend. InputError for another shape, dtype or range.
    """
    attended = floats("attended", attended, (None, None))
    whole("attended.size", attended.size, 1)
    vocab = whole("vocab", vocab, 1, (1 << 32) - 1)
    seed = whole("seed", seed, 0, (1 << 32) - 1)
    device = devices.device()
    return np.asarray(
        device.get(launches.project(device, device.put(attended.reshape(-1)), attended.size, vocab, seed))
    )


def _mlx(plane: KvPlane, query: F32) -> F32:
    try:
        import mlx.core as mx
    except ImportError as error:
        raise BackendUnavailable(
            f"mlx does not import ({error}); the reader 'mlx' needs it: `pip install 'mlx[cpu]'`"
        ) from error
    live = np.flatnonzero(plane.occupants() >= 0)
    heads = (plane.n_kv_heads, plane.capacity, plane.head_dim)

    def rows(buffer: Any) -> Any:
        cache = mx.array(plane.device.half(buffer))
        if plane.head_major:
            by_head = cache.reshape(heads)
        else:
            by_head = cache.reshape(plane.capacity, plane.n_kv_heads, plane.head_dim).transpose(1, 0, 2)
        return by_head[:, mx.array(live)][None].astype(mx.float32)

    read = mx.fast.scaled_dot_product_attention(
        mx.array(query)[None, :, None],
        rows(plane.key_cache),
        rows(plane.value_cache),
        scale=plane.head_dim**-0.5,
    )
    return np.array(read[0, :, 0])
