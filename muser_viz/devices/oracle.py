"""``numpy``: what each kernel computes, in NumPy, bit for bit, without a compiler.

Also the tests' oracle. A NaN's payload is the hardware's, and may differ. It is
slow where a kernel sums in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz.devices.host import Arrays
from muser_viz.devices.protocol import KINDS, Fresh, Kind
from muser_viz.devices.source import catalogue

F32 = npt.NDArray[np.float32]
_TINY = np.float32(2.0**-40)


def fma(a: Any, b: Any, c: Any) -> F32:
    """``a * b + c`` of f32 arrays, rounded once to f32.

    The product is exact in f64. Its sum with ``c`` is rounded to odd there
    (the last bit is set where anything was lost), so the second rounding, to
    f32, sees which side of a tie the exact value was on.
    """
    product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
    addend = np.asarray(c, np.float64)
    total = np.asarray(product + addend)
    virtual = total - product
    lost = (product - (total - virtual)) + (addend - virtual)
    bits = total.view(np.int64)
    even = (bits & 1) == 0
    toward = np.where((lost > 0) == (total > 0), 1, -1)
    odd = np.where((lost != 0) & even & np.isfinite(total), bits + toward, bits)
    return odd.view(np.float64).astype(np.float32)


def exp(x: F32) -> F32:
    """The kernels' exponential of ``x <= 0``."""
    f = np.float32
    too_low = x < f(-40)
    x = np.where(too_low, f(-40), x)
    n = np.rint(x * f(float.fromhex("0x1.715476p+0")))
    r = fma(n, f(-float.fromhex("0x1.62e4p-1")), x)
    r = fma(n, f(-float.fromhex("0x1.7f7d1cp-20")), r)
    p: F32 = np.full_like(x, float.fromhex("0x1.a01a02p-13"))
    for coefficient in ("0x1.6c16c2p-10", "0x1.111112p-7", "0x1.555556p-5", "0x1.555556p-3", "0x1p-1"):
        p = fma(p, r, f(float.fromhex(coefficient)))
    p = fma(fma(p, r, f(1)), r, f(1))
    powers = np.where(x > f(-(2.0**-26)), f(1), p * np.ldexp(f(1), n.astype(np.int32)))
    return np.where(too_low, f(0), powers).astype(np.float32)


def bfloat16_words(x: Any) -> npt.NDArray[np.uint16]:
    """The words of numbers as bf16, rounded from f32 to nearest, ties to even."""
    words = np.asarray(x, np.float32).view(np.uint32)
    rounded = (words + np.uint32(0x7FFF) + ((words >> 16) & 1)) >> 16
    quiet = (words >> 16) | np.uint32(0x40)
    return np.where(np.isnan(x), quiet, rounded).astype(np.uint16)


def _widened(x: Any, kind: Kind) -> F32:
    """An array of ``kind`` as f32."""
    if kind == "bfloat16":
        x = (x.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(x, np.float32)


def _narrowed(x: F32, kind: Kind) -> npt.NDArray[Any]:
    """f32 as an array of ``kind``."""
    return bfloat16_words(x) if kind == "bfloat16" else x.astype(KINDS[kind])


def _drop_tiny(x: F32) -> F32:
    return np.where(np.abs(x) < _TINY, np.float32(0), x)


def _live(
    cache: npt.NDArray[np.float16],
    heads: int,
    kv_heads: int,
    head_dim: int,
    capacity: int,
    head_major: int,
    rows: int,
    low_rows: int,
    gap: int,
) -> F32:
    """Live rows in ascending physical order, a copy for each query head: (heads, rows, head_dim)."""
    i = np.arange(rows)
    physical = np.where(i < low_rows, i, i + gap)
    if head_major:
        per_head = cache.reshape(kv_heads, capacity, head_dim)[:, physical]
    else:
        per_head = cache.reshape(capacity, kv_heads, head_dim)[physical].transpose(1, 0, 2)
    return np.repeat(per_head.astype(np.float32), heads // kv_heads, axis=0)


def _store(key: F32, value: F32, key_cache: Any, value_cache: Any, kv_dim: int, row: int) -> None:
    for cache, source in ((key_cache, key), (value_cache, value)):
        cache.reshape(-1, kv_dim)[row] = source.reshape(kv_dim)


def _store_batch(
    key: F32,
    value: F32,
    key_cache: Any,
    value_cache: Any,
    kv_dim: int,
    source_first: int,
    source_count: int,
    start: int,
    capacity: int,
    origin_logical: int,
    origin_physical: int,
    head_dim: int,
    head_major: int,
) -> None:
    source = source_first + np.arange(source_count)
    physical = (origin_physical + start + source - origin_logical) % capacity
    for cache, chunk in ((key_cache, key), (value_cache, value)):
        live = chunk.reshape(-1, kv_dim)[source]
        if head_major:
            per_head = live.reshape(source_count, -1, head_dim).transpose(1, 0, 2)
            cache.reshape(-1, capacity, head_dim)[:, physical] = per_head
        else:
            cache.reshape(capacity, kv_dim)[physical] = live


def _hand(
    caches: Iterable[Any],
    outputs: Iterable[F32],
    layout: tuple[int, int, int],
    physical: npt.NDArray[np.int64],
    first: int,
    out_rows: int,
    key_by_element: int,
) -> None:
    """Physical rows of both caches to row ``first`` and on of the outputs, head by head."""
    head_dim, capacity, head_major = layout
    for cache, out, by_element in zip(caches, outputs, (key_by_element, 0), strict=True):
        if head_major:
            taken = cache.reshape(-1, capacity, head_dim)[:, physical]
        else:
            taken = cache.reshape(capacity, -1, head_dim)[physical].transpose(1, 0, 2)
        place = slice(first, first + len(physical))
        if by_element:
            out.reshape(len(taken), head_dim, out_rows)[:, :, place] = taken.transpose(0, 2, 1)
        else:
            out.reshape(len(taken), out_rows, head_dim)[:, place] = taken


def _places(first: int, low_rows: int, second: int, rows: int) -> npt.NDArray[np.int64]:
    i = np.arange(rows)
    return np.where(i < low_rows, first + i, second + (i - low_rows))


def _rows(
    key: F32,
    value: F32,
    key_cache: Any,
    value_cache: Any,
    key_rows: F32,
    value_rows: F32,
    kv_dim: int,
    head_dim: int,
    capacity: int,
    head_major: int,
    rows: int,
    first: int,
    low_rows: int,
    second: int,
    out_first: int,
    out_rows: int,
    key_by_element: int,
    filled_rows: int,
    old_rows: int,
) -> None:
    outputs, to = (key_rows, value_rows), (out_rows, key_by_element)
    old = _places(first, low_rows, second, min(rows, old_rows))
    layout = (head_dim, capacity, head_major)
    _hand((key_cache, value_cache), outputs, layout, old, out_first, *to)
    new, empty = rows - len(old), filled_rows - rows
    after = np.zeros((2, new + empty, kv_dim), np.float16)
    for room, given in zip(after, (key, value), strict=True):
        room[:new] = given.reshape(-1)[: new * kv_dim].reshape(new, kv_dim)
    if new + empty:
        every = np.arange(new + empty)
        _hand(after, outputs, (head_dim, new + empty, 0), every, out_first + len(old), *to)


def _store_rows(key: F32, value: F32, key_cache: Any, value_cache: Any, *rest: Any) -> None:
    *told, write_index = rest
    _, _, kv_dim, head_dim, capacity, head_major, rows, first, low_rows, second, *_ = told
    if write_index in _places(first, low_rows, second, rows):
        for cache, source in ((key_cache, key), (value_cache, value)):
            if head_major:
                cache.reshape(-1, capacity, head_dim)[:, write_index] = source.reshape(-1, head_dim)
            else:
                cache.reshape(capacity, kv_dim)[write_index] = source.reshape(kv_dim)
    _rows(*[key, value, key_cache, value_cache, *told, rows])


def _scores(
    query: F32,
    key_cache: Any,
    scores: F32,
    heads: int,
    kv_heads: int,
    head_dim: int,
    capacity: int,
    head_major: int,
    rows: int,
    low_rows: int,
    gap: int,
    scale: float,
) -> None:
    keys = _live(key_cache, heads, kv_heads, head_dim, capacity, head_major, rows, low_rows, gap)
    q = _drop_tiny(query.reshape(heads, head_dim))
    dot = np.zeros((heads, rows), np.float32)
    for dim in range(head_dim):
        dot = fma(q[:, dim, None], keys[:, :, dim], dot)
    scores.reshape(heads, rows)[:] = dot * np.float32(scale)


def _weights(scores: F32, weights: F32, heads: int, rows: int) -> None:
    s = scores.reshape(heads, rows)
    weights.reshape(heads, rows)[:] = exp(s - s.max(axis=1, keepdims=True))


def _mix(
    weights: F32,
    value_cache: Any,
    starts: Any,
    attended: F32,
    orders: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    capacity: int,
    head_major: int,
    rows: int,
    low_rows: int,
    gap: int,
) -> None:
    values = _live(value_cache, heads, kv_heads, head_dim, capacity, head_major, rows, low_rows, gap)
    w = weights.reshape(heads, rows)
    out = attended.reshape(orders, heads, head_dim)
    for order in range(orders):
        total = np.zeros((heads, 1), np.float32)
        sums = np.zeros((heads, head_dim), np.float32)
        for i in (int(starts[order]) + np.arange(rows)) % rows:
            total = total + w[:, i, None]
            sums = fma(w[:, i, None], values[:, i], sums)
        out[order] = sums / total


def _lanes(
    scores: F32,
    value_cache: Any,
    attended: F32,
    heads: int,
    kv_heads: int,
    head_dim: int,
    capacity: int,
    head_major: int,
    rows: int,
    low_rows: int,
    gap: int,
) -> None:
    values = _live(value_cache, heads, kv_heads, head_dim, capacity, head_major, rows, low_rows, gap)
    s = scores.reshape(heads, rows)
    one = np.float32(1)

    def step(state: tuple[F32, F32, F32], score: F32, total: Any, summed: F32) -> tuple[F32, F32, F32]:
        """Merge (score, total, summed) into a running (largest, total, sum), each with a head axis."""
        largest, have_total, have_sum = state
        grows = score > largest
        fade = exp(np.where(grows, largest - score, score - largest).astype(np.float32))
        return (
            np.where(grows, score, largest),
            np.where(grows, fma(have_total, fade, total), fma(total, fade, have_total)),
            np.where(grows, fma(have_sum, fade, summed), fma(summed, fade, have_sum)),
        )

    merged: tuple[F32, F32, F32] | None = None
    for lane in range(min(32, rows)):
        zero = np.zeros((heads, 1), np.float32)
        state = (s[:, lane, None], zero, np.zeros((heads, head_dim), np.float32))
        for i in range(lane, rows, 32):
            state = step(state, s[:, i, None], one, values[:, i])
        merged = state if merged is None else step(merged, *state)
    assert merged is not None
    attended.reshape(heads, head_dim)[:] = merged[2] / merged[1]


def _mix_bits(x: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def _project(attended: F32, logits: F32, inputs: int, vocab: int, seed: int) -> None:
    x = _drop_tiny(attended.reshape(inputs))
    row = _mix_bits(np.arange(vocab, dtype=np.uint32) + _mix_bits(np.full(1, seed, np.uint32)))
    total = np.zeros(vocab, np.float32)
    for i in range(inputs):
        column = np.array([i], np.uint32) * np.uint32(0x9E3779B9)
        bits = _mix_bits(row + column)
        weight = ((bits >> np.uint32(16)).astype(np.int32) - 32768).astype(np.float32) * np.float32(2.0**-20)
        total = fma(x[i], weight, total)
    logits.reshape(vocab)[:] = total


_KERNELS: dict[str, Callable[..., None]] = {
    "muser_kv_store_f16": _store,
    "muser_kv_store_batch_f16": _store_batch,
    "muser_kv_rows_f16": _rows,
    "muser_kv_store_rows_f16": _store_rows,
    "muser_scores_f32": _scores,
    "muser_weights_f32": _weights,
    "muser_mix_f32": _mix,
    "muser_lanes_f32": _lanes,
    "muser_project_f32": _project,
}


class NumpyDevice(Arrays):
    """No kernel runs: the same stores and readers in NumPy."""

    name = "numpy"

    def describe(self) -> str:
        """NumPy's version."""
        return f"NumPy {np.__version__}, no kernel"

    def launch(
        self,
        name: str,
        grid: int,  # noqa: ARG002
        arguments: Sequence[Any],
        kind: Kind = "float32",
    ) -> list[npt.NDArray[Any]]:
        """Compute what the kernel computes over its whole grid; done on return."""
        passed = [np.empty(a.shape, KINDS[kind]) if isinstance(a, Fresh) else a for a in arguments]
        parameters = catalogue()[name].buffers
        floats = [i for i, p in enumerate(parameters) if p.base == "float" and p.kind != "scalar"]
        computed = list(passed)
        if kind != "float32":
            for i in floats:
                computed[i] = _widened(passed[i], kind)
        with np.errstate(over="ignore", invalid="ignore"):
            _KERNELS[name](*computed)
            for i in floats:
                if computed[i] is not passed[i] and parameters[i].kind == "out":
                    passed[i][...] = _narrowed(computed[i], kind)
        return [array for array, given in zip(passed, arguments, strict=True) if isinstance(given, Fresh)]
