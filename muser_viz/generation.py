"""Generating with a KV store and without one, and counting what each way does (§15.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz.checks import whole
from muser_viz.devices.oracle import fma
from muser_viz.errors import ContextExhausted, InputError
from muser_viz.geometry import Geometry, LayerKind
from muser_viz.inputs import seeded
from muser_viz.plane import KvPlane
from muser_viz.readers import attend

F32 = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]


def rows_needed(geometry: Geometry, tokens: int) -> tuple[int, ...]:
    """For each layer, how many of its K rows the last of ``tokens`` depends on (§15.1).

    Counted from the top layer down: a full layer needs a row of every token, a
    sliding one the window of each position that the layer above needs.
    InputError for a number of tokens outside ``1 .. context_limit``.
    """
    tokens = whole("tokens", tokens, 1, geometry.context_limit)
    needed, wanted = [], 1
    for layer in reversed(range(geometry.n_layers)):
        if geometry.kind(layer) is LayerKind.FULL_NOPE:
            wanted = tokens
        else:
            wanted = min(tokens, wanted + geometry.sliding_window - 1)
        needed.append(wanted)
    return tuple(reversed(needed))


class _Work:
    """Counters, a number a layer, raised where the work is done."""

    def __init__(self, layers: int) -> None:
        self.kv_rows: Counts = np.zeros(layers, np.int64)
        self.keys_scored: Counts = np.zeros(layers, np.int64)


def _project(rows: F32, weights: F32) -> F32:
    """``rows @ weights`` in f32: each output one chain of ``fma`` over the inputs, so its bits travel."""
    total = np.zeros((len(rows), weights.shape[1]), np.float32)
    for i in range(len(weights)):
        total = fma(rows[:, i, None], weights[i], total)
    return total


class StandInModel:
    """A stack of attention layers with seeded weights: it generates, and means nothing (§15.1).

    A layer projects each token's state to Q, K and V, stores K and V in a plane,
    reads it with the ``"scan"`` reader, and adds a projection of that to the
    state (``n_query_heads * head_dim`` f32 elements). It has no norms, no
    feed-forward part and no RoPE. Every step is in a fixed order: the same bits
    on every machine. InputError for a vocabulary below 1 or a seed outside
    ``0 .. 2**32 - 1``.
    """

    def __init__(self, geometry: Geometry, vocab: int = 64, seed: int = 0) -> None:
        self.geometry = geometry
        self.vocab = whole("vocab", vocab, 1)
        width = geometry.n_query_heads * geometry.head_dim
        shapes = [(self.vocab, width), (width, self.vocab)]
        for _ in range(geometry.n_layers):
            shapes += [(width, width), (width, 2 * geometry.kv_dim), (width, width)]
        ends = np.cumsum([rows * columns for rows, columns in shapes])
        drawn = np.split(seeded(seed, int(ends[-1])), ends[:-1])
        tables = [part.reshape(shape) for part, shape in zip(drawn, shapes, strict=True)]
        scale = np.float32(2.0 ** -(width.bit_length() // 2))
        self._embedding = tables[0]
        self._head, *weights = (table * scale for table in tables[1:])
        self._q, self._kv, self._out = weights[0::3], weights[1::3], weights[2::3]

    def planes(self, context: int) -> tuple[KvPlane, ...]:
        """An empty plane for each layer: a ring of the window's rows, or ``context`` rows, head-major."""
        context = whole("context", context, 1, self.geometry.context_limit)
        return tuple(self._plane(layer, context) for layer in range(self.geometry.n_layers))

    def _plane(self, layer: int, context: int) -> KvPlane:
        full = self.geometry.kind(layer) is LayerKind.FULL_NOPE
        rows = context if full else self.geometry.sliding_window
        return KvPlane(rows, self.geometry.n_kv_heads, self.geometry.head_dim, head_major=full)

    def extend(self, planes: Sequence[KvPlane], tokens: Sequence[int]) -> F32:
        """Run the next tokens through all layers, storing their K and V in ``planes``.

        Returns the tokens' states: f32, ``(n_layers + 1, n, width)``: what each
        layer projects its K and V from, then the last layer's output. InputError
        for a token outside the vocabulary or another number of planes;
        ContextExhausted past the rows of a full layer. Then nothing is stored.
        """
        return self._extend(planes, tokens, _Work(self.geometry.n_layers))

    def _extend(self, planes: Sequence[KvPlane], tokens: Sequence[int], work: _Work) -> F32:
        states = [self._embedded(tokens)]
        if len(planes) != self.geometry.n_layers:
            raise InputError(f"{len(planes)} planes were given for {self.geometry.n_layers} layers")
        for layer, plane in enumerate(planes):
            end = plane.next_position + len(tokens)
            if self.geometry.kind(layer) is LayerKind.FULL_NOPE and end > plane.capacity:
                raise ContextExhausted(
                    f"layer {layer}: {end} tokens are past its plane's {plane.capacity} rows; "
                    "nothing was changed: make planes for a larger context"
                )
        for layer, plane in enumerate(planes):
            states.append(self._through(layer, states[-1], plane, len(tokens), work))
        return np.stack(states)

    def logits(self, state: Any) -> F32:
        """The logits of one token's state (f32, ``(width,)``, from the last layer): f32, ``(vocab,)``."""
        return np.asarray(_project(np.asarray(state, np.float32)[None], self._head)[0])

    def _embedded(self, tokens: Sequence[int]) -> F32:
        if len(tokens) == 0:
            raise InputError("no tokens were given; give at least one")
        return np.asarray(self._embedding[[whole("token", token, 0, self.vocab - 1) for token in tokens]])

    def _through(self, layer: int, states: F32, plane: KvPlane, reading: int, work: _Work) -> F32:
        """The next tokens' states through one layer; only the last ``reading`` of them attend."""
        geometry = self.geometry
        kept = states[len(states) - reading :]
        keys, values = np.split(_project(states, self._kv[layer]), 2, axis=1)
        work.kv_rows[layer] += len(keys)
        queries = _project(kept, self._q[layer]).reshape(reading, geometry.n_query_heads, geometry.head_dim)
        read = np.empty_like(queries)
        for i, (key, value) in enumerate(zip(keys, values, strict=True)):
            plane.append(plane.next_position, key, value, layer)
            at = i - (len(states) - reading)
            if at >= 0:
                read[at] = attend(plane, queries[at])
                work.keys_scored[layer] += plane.len
        return kept + _project(read.reshape(reading, -1), self._out[layer])

    def _recomputed(self, tokens: Sequence[int], work: _Work) -> F32:
        """The last token's final state from the tokens alone: no more rows than it depends on."""
        needed = rows_needed(self.geometry, len(tokens))
        states = self._embedded(tokens)[len(tokens) - needed[0] :]
        for layer, rows in enumerate(needed):
            plane = self._plane(layer, len(tokens))
            skipped = (len(tokens) - rows) % plane.capacity
            if skipped:  # turns the ring as a kept one is; no query reads these rows
                empty = np.zeros((skipped, plane.kv_dim), np.float32)
                plane.append_batch(0, empty, empty, layer)
            reading = 1 if layer + 1 == len(needed) else needed[layer + 1]
            states = self._through(layer, states, plane, reading, work)
        return np.asarray(states[-1])


@dataclass(frozen=True)
class Generation:
    """What was generated, and the work for each token.

    ``logits``: f32, ``(count, vocab)``. ``kv_rows`` (tokens whose K and V were
    projected) and ``keys_scored`` (live rows under a query, once for all heads):
    int64, ``(count, n_layers)``, counted where it was done.
    """

    tokens: tuple[int, ...]
    logits: F32
    kv_rows: Counts
    keys_scored: Counts


def generate(model: StandInModel, prompt: Sequence[int], count: int, store: bool) -> Generation:
    """Pick ``count`` tokens after ``prompt``, each the largest logit's (§15.1).

    With ``store`` every token runs through the layers once and its K and V are
    kept. Without, each step starts from the tokens and recomputes all that its
    last token depends on, and no more. The same bits either way. InputError
    for a token outside the vocabulary, an empty prompt or a count below 1.
    """
    count = whole("count", count, 1)
    tokens = list(prompt)
    planes = model.planes(len(tokens) + count)
    fresh = tokens
    logits, works = [], []
    for _ in range(count):
        work = _Work(model.geometry.n_layers)
        state = model._extend(planes, fresh, work)[-1, -1] if store else model._recomputed(tokens, work)
        logits.append(model.logits(state))
        works.append(work)
        fresh = [int(logits[-1].argmax())]
        tokens = tokens + fresh
    return Generation(
        tuple(tokens[len(prompt) :]),
        np.stack(logits),
        np.stack([work.kv_rows for work in works]),
        np.stack([work.keys_scored for work in works]),
    )
