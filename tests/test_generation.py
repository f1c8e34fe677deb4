from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muser_viz as mv

TOKENS = (2, 8, 22, 47, 28, 56)
DIGEST = "84495789f2382daf09d994f8dacbe0eb"


def stack(layers: int, window: int, full_every: int) -> mv.Geometry:
    return mv.Geometry(layers, window, 1, 4, n_query_heads=2, full_every=full_every)


@settings(max_examples=25)
@given(
    layers=st.integers(1, 5),
    window=st.integers(1, 6),
    full_every=st.integers(1, 6),
    prompt=st.lists(st.integers(0, 15), min_size=1, max_size=9),
    count=st.integers(1, 8),
)
def test_both_ways_give_the_same_bits(
    layers: int, window: int, full_every: int, prompt: list[int], count: int
) -> None:
    model = mv.StandInModel(stack(layers, window, full_every), vocab=16, seed=3)
    kept, recomputed = (mv.generate(model, prompt, count, store=store) for store in (True, False))
    assert kept.tokens == recomputed.tokens
    assert not mv.differing(kept.logits, recomputed.logits).any()
    assert (kept.kv_rows[1:] == 1).all()
    for step, rows in enumerate(recomputed.kv_rows):
        assert tuple(rows) == mv.rows_needed(model.geometry, len(prompt) + step)
    assert (recomputed.keys_scored[1:] >= kept.keys_scored[1:]).all()


def test_two_full_layers_count_as_the_formulas_say() -> None:
    n = 12
    model = mv.StandInModel(stack(2, 1, 1), seed=2)
    kept, recomputed = (mv.generate(model, [0], n, store=store) for store in (True, False))
    squares, cubes = n * (n + 1) // 2, n * (n + 1) * (n + 2) // 6
    assert kept.kv_rows.sum(0).tolist() == [n, n]
    assert kept.keys_scored.sum(0).tolist() == [squares, squares]
    assert recomputed.kv_rows.sum(0).tolist() == [squares, squares]
    assert recomputed.keys_scored.sum(0).tolist() == [cubes, squares]


def test_the_bits_are_the_same_on_every_backend(backend: str) -> None:
    mv.use_backend(backend)
    made = mv.generate(mv.StandInModel(stack(3, 3, 3), seed=1), [5, 9], 6, store=True)
    digest = hashlib.sha256(made.logits.tobytes()).hexdigest()
    assert made.tokens == TOKENS
    assert digest.startswith(DIGEST)


def test_rows_above_layer_0_depend_on_the_prefix_and_do_not_change() -> None:
    model = mv.StandInModel(stack(2, 1, 1), seed=2)
    first, other = model.planes(20), model.planes(20)
    model.extend(first, range(10))
    model.extend(other, [0, 1, 2, 50, *range(4, 10)])
    pairs = zip(first, other, strict=True)
    hit = [mv.differing(a.keys(), b.keys()).any(axis=(0, 2)).nonzero()[0] for a, b in pairs]
    assert [rows.tolist() for rows in hit] == [[3], [3, 4, 5, 6, 7, 8, 9]]
    before = [(plane.keys(), plane.values()) for plane in first]
    model.extend(first, range(20, 30))
    for plane, (keys, values) in zip(first, before, strict=True):
        assert not mv.differing(plane.keys()[:, :10], keys).any()
        assert not mv.differing(plane.values()[:, :10], values).any()


def test_a_stack_of_windows_reaches_one_window_less_one_further_a_layer() -> None:
    model = mv.StandInModel(stack(4, 5, 5), seed=1)
    states, others = (model.extend(model.planes(30), [token, *range(29)]) for token in (7, 8))
    hit = mv.differing(states, others).any(axis=2)
    for layer in range(5):
        assert hit[layer].nonzero()[0].tolist() == list(range(layer * 4 + 1))


def test_a_chunk_ends_where_single_tokens_end() -> None:
    model = mv.StandInModel(stack(3, 4, 3), seed=1)
    at_once, singly = model.planes(11), model.planes(11)
    states = model.extend(at_once, range(11))
    for token in range(11):
        assert not mv.differing(model.extend(singly, [token])[:, 0], states[:, token]).any()
    for a, b in zip(at_once, singly, strict=True):
        assert a.ring == b.ring
        assert not mv.differing(a.raw_key(), b.raw_key()).any()
        assert not mv.differing(a.raw_value(), b.raw_value()).any()


def test_rows_needed() -> None:
    assert mv.rows_needed(mv.MUSE_GLIMMER, 131_072) == (131_072,) * 52
    assert mv.rows_needed(mv.Geometry(n_layers=39, full_every=40), 131_072)[0] == 39 * 2047 + 1
    assert mv.rows_needed(mv.Geometry(n_layers=6), 10_000) == (10_000,) * 4 + (4095, 2048)
    assert mv.rows_needed(stack(4, 8, 5), 10) == (10, 10, 10, 8)
    with pytest.raises(mv.InputError, match="tokens is 0"):
        mv.rows_needed(mv.MUSE_GLIMMER, 0)


def test_refusals_store_nothing() -> None:
    model = mv.StandInModel(stack(2, 4, 2), vocab=16)
    planes = model.planes(5)
    model.extend(planes, range(3))
    before = [plane.ring for plane in planes]
    for tokens in ([], [16], [-1], [1, "a"]):
        with pytest.raises(mv.InputError):
            model.extend(planes, tokens)  # type: ignore[arg-type]
    with pytest.raises(mv.InputError, match="1 planes were given for 2 layers"):
        model.extend(planes[:1], [0])
    with pytest.raises(mv.ContextExhausted, match="layer 1: 6 tokens are past its plane's 5 rows"):
        model.extend(planes, range(3))
    assert [plane.ring for plane in planes] == before
    for store in (True, False):
        with pytest.raises(mv.InputError):
            mv.generate(model, [], 3, store=store)
        with pytest.raises(mv.InputError):
            mv.generate(model, [0], 0, store=store)
    with pytest.raises(mv.InputError):
        mv.StandInModel(stack(2, 4, 2), vocab=0)
    with pytest.raises(mv.InputError):
        mv.StandInModel(stack(2, 4, 2), seed=-1)


def test_projection_is_a_product() -> None:
    from muser_viz.generation import _project

    rows, weights = mv.seeded(1, 7, 12), mv.seeded(2, 12, 5)
    wanted = rows.astype(np.float64) @ weights.astype(np.float64)
    assert np.abs(_project(rows, weights) - wanted).max() < 1e-5
