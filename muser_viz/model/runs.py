"""Feeding a model through caches, ours or mlx-lm's, and comparing two sessions (§15.10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from muser_viz.bits import differing
from muser_viz.checks import whole
from muser_viz.errors import InputError
from muser_viz.model.caches import model_caches
from muser_viz.model.mlx_lm import library
from muser_viz.store import KvStore

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]


class RoundedFeed:
    """One of mlx-lm's caches, fed K and V rounded to f16 first, in the model's own type."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        """The inner cache's, of rows that f16 can hold."""
        rounded = (rows.astype(mx.float16).astype(rows.dtype) for rows in (keys, values))
        return self.inner.update_and_fetch(*rounded)


def peer_caches(model: Any, rounded: bool = False) -> list[Any]:
    """mlx-lm's own caches for a model: RotatingKVCache for sliding layers, KVCache for full ones (§15.10).

    ``rounded``: K and V are rounded to f16 before they are given to them, as our
    planes hold them.
    """
    caches = list(model.make_cache())
    return [RoundedFeed(cache) for cache in caches] if rounded else caches


def peer_rows(chunks: Iterable[int], window: int = 2048) -> I64:
    """The token in each row of mlx-lm's RotatingKVCache of ``window`` after ``chunks``: int64, -1 where none.

    Tokens 0, 1, .. are fed in chunks of these sizes; a size of 1 is a decode step.
    The array may have more rows than the window: what a chunk's queries see stays
    until the next step. InputError for a size below 1; BackendUnavailable without
    mlx-lm.
    """
    _, module = library()
    window = whole("window", window, 1)
    cache = module.RotatingKVCache(max_size=window, keep=0)
    fed = 0
    for size in chunks:
        count = whole("chunk", size, 1)
        marked = mx.arange(fed + 1, fed + count + 1, dtype=mx.float32).reshape(1, 1, count, 1)
        cache.update_and_fetch(marked, marked)
        fed += count
    if not fed:
        return np.empty(0, np.int64)
    mx.eval(cache.keys)
    return np.array(cache.keys).reshape(-1).astype(np.int64) - 1


def feed_model(model: Any, caches: Sequence[Any], tokens: Any, chunk: int = 1) -> F32:
    """Give a model ``tokens`` in chunks; the logits of each chunk's last token: f32, ``(chunks, vocab)``.

    ``tokens``: whole numbers in the vocabulary, ``(n,)``. A chunk of 1 is decode, one
    token at a time. InputError for another shape or an unknown token, before any is
    given; and as the caches refuse.
    """
    given = np.asarray(tokens)
    chunk = whole("chunk", chunk, 1)
    vocab = int(model.args.vocab_size)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise InputError(f"tokens are {given.dtype} {given.shape}; give whole numbers, (n,)")
    if int(given.min()) < 0 or int(given.max()) >= vocab:
        raise InputError(f"tokens are from {given.min()} to {given.max()}; give 0 to {vocab - 1}")
    logits = []
    for first in range(0, given.size, chunk):
        said = model(mx.array(given[first : first + chunk].astype(np.int32))[None], cache=list(caches))
        last = said[0, -1].astype(mx.float32)
        mx.eval(last)
        logits.append(np.array(last))
    return np.stack(logits)


def generate_greedily(model: Any, caches: Sequence[Any], token: int, count: int) -> tuple[I64, F32]:
    """Decode ``count`` tokens from ``token`` on, each the argmax of the last logits.

    The tokens that were sampled, int64 ``(count,)``, and the logits, f32 ``(count,
    vocab)``. Errors as ``feed_model``.
    """
    sampled, said = [], []
    for _ in range(whole("count", count, 1)):
        logits = feed_model(model, caches, [token])[0]
        token = int(logits.argmax())
        sampled.append(token)
        said.append(logits)
    return np.array(sampled, np.int64), np.stack(said)


@dataclass(frozen=True)
class Spread:
    """How two sessions of one model part, token by token (§15.6, §15.10).

    ``tokens``: what each sampled, int64 ``(2, n)``. ``logits``: logits that differ, of
    ``vocab``, int64 ``(n,)``; ``largest``: the largest absolute difference, f32 ``(n,)``.
    ``rows``: words of the token's K and V row that differ, int64 ``(n, layers)``, of
    ``row_words``.
    """

    tokens: I64
    logits: I64
    largest: F32
    rows: I64
    vocab: int
    row_words: int

    @property
    def same_tokens(self) -> int:
        """Tokens sampled before the first that differs."""
        other = np.flatnonzero(self.tokens[0] != self.tokens[1])
        return int(other[0]) if other.size else self.tokens.shape[1]

    @property
    def first_layer(self) -> int | None:
        """The lowest layer that stored another row while the tokens agreed; None where none did.

        A token's row is stored before it is sampled from, so the row of the first
        sampled token that differs comes after it.
        """
        layers = np.flatnonzero(self.rows[: self.same_tokens + 1].any(axis=0))
        return int(layers[0]) if layers.size else None


def compare_sessions(model: Any, stores: Sequence[KvStore], token: int, count: int) -> Spread:
    """Decode ``count`` tokens greedily from ``token`` in each of two stores, and compare (§15.6).

    The stores stand at one position and are written. Errors as ``feed_model``.
    """
    if len(stores) != 2 or stores[0].next_position != stores[1].next_position:
        raise InputError("give two stores that stand at one position")
    first, second = stores
    caches = [model_caches(store) for store in stores]
    given = [token, token]
    tokens: list[list[int]] = []
    logits, largest, rows = [], [], []
    for _ in range(whole("count", count, 1)):
        position = first.next_position
        said = [feed_model(model, caches[i], [given[i]])[0] for i in (0, 1)]
        given = [int(each.argmax()) for each in said]
        tokens.append(given)
        logits.append(int(differing(*said).sum()))
        largest.append(np.abs(said[0] - said[1]).max())
        rows.append(
            [
                sum(
                    int(differing(*pair).sum())
                    for pair in zip(a.row(a.physical(position)), b.row(b.physical(position)), strict=True)
                )
                for a, b in zip(first.planes, second.planes, strict=True)
            ]
        )
    return Spread(
        np.array(tokens, np.int64).T,
        np.array(logits, np.int64),
        np.array(largest, np.float32),
        np.array(rows, np.int64),
        int(model.args.vocab_size),
        2 * first.geometry.kv_dim,
    )
