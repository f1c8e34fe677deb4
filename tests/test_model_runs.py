"""Sessions of a model: fed, compared, saved in one process and continued in another."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muser_viz as mv
from muser_viz.model.build import small_model
from muser_viz.model.caches import model_caches
from muser_viz.model.runs import (
    compare_sessions,
    feed_model,
    generate_greedily,
    peer_caches,
    peer_rows,
)

SMALL = mv.Geometry(8, 32, 2, 16, 512, 4)
TOKENS = (np.arange(300) * 37 + 11) % 64
CONTINUE = """
import hashlib, sys
import muser_viz as mv
from muser_viz.model.build import small_model
from muser_viz.model.caches import model_caches
from muser_viz.model.runs import generate_greedily
store = mv.KvStore.load("session")
model = small_model(store.geometry, hidden=32, feed_forward=32, vocab=64)
tokens, logits = generate_greedily(model, model_caches(store), int(sys.argv[1]), 64)
print(hashlib.sha256(logits.tobytes()).hexdigest(), *tokens)
"""


@pytest.fixture(scope="module")
def model() -> Any:
    return small_model(SMALL, hidden=32, feed_forward=32, vocab=64)


def wrapped(model: Any) -> mv.KvStore:
    """A session past its wrap: 70 tokens in chunks, its rings' front in row 6."""
    store = mv.KvStore(SMALL, 256)
    feed_model(model, model_caches(store), TOKENS[:70], 24)
    return store


def test_a_save_continues_in_a_fresh_process_with_every_logit_bit(model: Any, tmp_path: Path) -> None:
    store = wrapped(model)
    first, _ = generate_greedily(model, model_caches(store), int(TOKENS[70]), 3)
    store.save(tmp_path / "session")
    command = [sys.executable, "-c", CONTINUE, str(first[-1])]
    other = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    tokens, logits = generate_greedily(model, model_caches(store), int(first[-1]), 64)
    digest, *sampled = other.stdout.split()
    assert [int(token) for token in sampled] == tokens.tolist()
    assert digest == hashlib.sha256(logits.tobytes()).hexdigest()


def test_the_rotation_dropped(model: Any) -> None:
    store = wrapped(model)
    control = compare_sessions(model, (store.turned(), store.turned()), int(TOKENS[70]), 12)
    assert not control.logits.any()
    assert not control.rows.any()
    assert (control.same_tokens, control.first_layer) == (12, None)
    spread = compare_sessions(model, (store.turned(), store.turned(0)), int(TOKENS[70]), 40)
    assert spread.logits[0] > 0
    assert spread.rows.shape == (40, 8)
    agreed = spread.rows[: spread.same_tokens + 1]
    assert not agreed[:, 0].any()
    assert agreed[:, 1:].any()
    assert (spread.first_layer or 0) >= 1
    assert spread.largest.max() < 0.01
    assert spread.vocab == 64
    assert spread.row_words == 64


def test_two_stores_apart_are_not_compared(model: Any) -> None:
    store = wrapped(model)
    other = store.turned()
    feed_model(model, model_caches(other), [1])
    with pytest.raises(mv.InputError, match="stand at one position"):
        compare_sessions(model, (store, other), 1, 1)


def test_generation_is_feeding_the_argmax(model: Any) -> None:
    store = wrapped(model)
    tokens, logits = generate_greedily(model, model_caches(store.turned()), 5, 4)
    fed = feed_model(model, model_caches(store.turned()), [5, *tokens[:3]])
    assert not mv.differing(fed, logits).any()
    assert tokens.tolist() == fed.argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("tokens", "words"),
    [([], r"\(0,\)"), ([[1]], r"\(1, 1\)"), ([1.0], "float64"), ([64], "give 0 to 63"), ([-1], "-1")],
)
def test_tokens_that_are_none(model: Any, tokens: Any, words: str) -> None:
    caches = model_caches(mv.KvStore(SMALL, 64))
    with pytest.raises(mv.InputError, match=words):
        feed_model(model, caches, tokens)
    with pytest.raises(mv.InputError, match="chunk"):
        feed_model(model, caches, [1], 0)
    assert caches[0].offset == 0


@pytest.mark.parametrize("window", [32, 2048])
def test_which_row_a_peer_puts_a_token_in(window: int) -> None:
    chunk = window // 4
    one_at_a_time = peer_rows([1] * (window + 3), window)
    ring = mv.Ring(window)
    ring.append_batch(0, window + 3)
    assert np.array_equal(one_at_a_time, ring.occupants())  # there both agree
    chunks = peer_rows([chunk] * 5, window)
    assert len(chunks) == window + chunk - 1  # what the last chunk's queries saw, in temporal order
    assert np.array_equal(chunks, np.arange(5 * chunk - len(chunks), 5 * chunk))
    both = peer_rows([chunk] * 5 + [1], window)
    assert len(both) == window
    assert both[0] == 5 * chunk
    assert both[1] == 5 * chunk + 1 - window  # row 0 was the oldest token's
    ring = mv.Ring(window)
    ring.append_batch(0, 5 * chunk + 1)
    assert set(both) == set(ring.occupants())
    assert not np.array_equal(both, ring.occupants())
    level = peer_rows([chunk] * 8 + [1], window)
    ring = mv.Ring(window)
    ring.append_batch(0, 8 * chunk + 1)
    assert np.array_equal(level, ring.occupants())
    assert peer_rows([], window).size == 0
    assert peer_rows([3], window).tolist() == [0, 1, 2]


def test_a_rounded_peer_holds_what_f16_can_hold(model: Any) -> None:
    peer = peer_caches(model, rounded=True)
    feed_model(model, peer, TOKENS[:5])
    held = np.array(peer[0].keys)
    assert held.dtype == np.float32
    assert np.array_equal(held, held.astype(np.float16).astype(np.float32))
    assert peer[3].offset == 5
