"""Planes as mlx-lm caches: the rows, the bits beside mlx-lm's own, what is refused."""

from __future__ import annotations

import copy
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

import muser_viz as mv
from muser_viz.devices.host import HostDevice
from muser_viz.model.build import small_model
from muser_viz.model.caches import PlaneCache, model_caches
from muser_viz.model.host_reading import HostReading
from muser_viz.model.row_copy import RowCopy
from muser_viz.model.runs import feed_model, generate_greedily, peer_caches

SMALL = mv.Geometry(4, 32, 2, 16, 512, 4)
KINDS = ("float32", "float16", "bfloat16")
TOKENS = (np.arange(300) * 37 + 11) % 64


def made(kind: Any = "float32", geometry: mv.Geometry = SMALL) -> Any:
    return small_model(geometry, hidden=32, feed_forward=32, vocab=64, kind=kind)


@pytest.fixture(scope="module")
def model() -> Any:
    return made()


def fresh(geometry: mv.Geometry = SMALL, max_context: int = 256) -> list[PlaneCache]:
    return model_caches(mv.KvStore(geometry, max_context))


def chunked(model: Any, caches: Any, sizes: list[int]) -> np.ndarray:
    said, done = [], 0
    for size in sizes:
        said.append(feed_model(model, caches, TOKENS[done : done + size], size)[0])
        done += size
    return np.stack(said)


def words(a: np.ndarray, b: np.ndarray) -> list[int]:
    return [int(row.sum()) for row in mv.differing(a, b)]


@pytest.mark.parametrize("kind", KINDS)
def test_one_at_a_time_across_the_wrap_every_logit_bit_is_the_peers(kind: Any) -> None:
    model = made(kind)
    ours = feed_model(model, fresh(), TOKENS[:40])
    assert not mv.differing(feed_model(model, fresh(), TOKENS[:40]), ours).any(), "the control does not hold"
    assert not mv.differing(feed_model(model, peer_caches(model, rounded=True), TOKENS[:40]), ours).any()


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_and_then_decode(kind: Any) -> None:
    model = made(kind)
    level = [16, 16, 16, 16, 1, 1]  # 64 tokens, twice the window: then both have token n in row n % 32
    ours = chunked(model, fresh(), level)
    assert not mv.differing(chunked(model, fresh(), level), ours).any()
    peer = chunked(model, peer_caches(model, rounded=True), level)
    assert not mv.differing(peer, ours).any()
    turned = [20, 20, 20, 1, 1]
    ours, peer = (chunked(model, c, turned) for c in (fresh(), peer_caches(model, rounded=True)))
    assert words(ours[:3], peer[:3]) == [0, 0, 0]
    assert np.abs(ours - peer).max() < {"float32": 1e-4, "float16": 2e-2, "bfloat16": 0.2}[kind]
    if kind == "float32":
        assert all(words(ours[3:], peer[3:])), "another order of sums showed nowhere"


def test_a_peer_that_is_not_rounded_is_near(model: Any) -> None:
    ours, peer = (feed_model(model, c, TOKENS[:40]) for c in (fresh(), peer_caches(model)))
    assert mv.differing(ours, peer).any()
    assert np.abs(ours - peer).max() < 0.05


def test_every_row_is_written_by_a_store_kernel(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    caches = fresh()
    launched: list[str] = []
    launch = type(caches[0].plane.device).launch

    def noted(self: Any, name: str, *rest: Any) -> Any:
        launched.append(name)
        return launch(self, name, *rest)

    code = HostDevice.code

    def coded(name: str, kind: Any) -> Any:
        run = code(name, kind)
        return lambda *given: launched.append(name) or run(*given)

    monkeypatch.setattr(type(caches[0].plane.device), "launch", noted)
    monkeypatch.setattr(HostDevice, "code", staticmethod(coded))
    feed_model(model, caches, TOKENS[:20], 20)
    assert launched == ["muser_kv_store_batch_f16", "muser_kv_rows_f16"] * 4
    launched.clear()
    feed_model(model, caches, TOKENS[20:21])
    assert launched == ["muser_kv_rows_f16", "muser_kv_store_rows_f16"] * 4  # a copy of the rows is made
    launched.clear()
    feed_model(model, caches, TOKENS[21:22])
    assert launched == ["muser_kv_store_rows_f16"] * 4
    peer = peer_caches(model)
    feed_model(model, peer, TOKENS[:20], 20)
    feed_model(model, peer, TOKENS[20:21])
    feed_model(model, peer, TOKENS[21:22])
    key = np.array(peer[0].keys[0]).astype(np.float16)[:, :22]
    assert np.array_equal(caches[0].plane.keys(), key)


def test_only_a_chunk_that_wraps_is_staged(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    staged: list[tuple[int, int]] = []
    before = HostReading.chunk

    def noted(self: HostReading, keys: Any, values: Any, kind: Any, staging: bool) -> Any:
        if staging:
            staged.append((self.plane.next_position, keys.shape[2]))
        return before(self, keys, values, kind, staging)

    monkeypatch.setattr(HostReading, "chunk", noted)
    caches = fresh()
    chunked(model, caches, [16, 16, 1])
    assert not staged
    chunked(model, caches, [2, 1])
    assert staged == [(33, 2)] * 3  # the three rings; the growing plane holds every token


GATE = (1, 31, 32, 33, 2047, 2048, 2049)


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_the_gates_positions_at_the_chapters_window(kind: Any) -> None:
    geometry = mv.Geometry(4, 2048, 2, 128, 4096, 4)
    model = made(kind, geometry)
    seeded = mx.array(np.stack([mv.seeded(layer, 2049, 256) for layer in range(4)]))
    exact = seeded.astype(mx.bfloat16).astype(mx.float16).astype(mx.float32)  # a row that both types hold
    rows = np.array(exact)
    for position in GATE:
        store = mv.KvStore(geometry, 2100)
        store.append_batch(0, rows[:, :position], rows[:, :position])
        peer = peer_caches(model, rounded=True)
        for layer, cache in enumerate(peer):
            held = mx.array(rows[layer].reshape(2049, 2, 128).transpose(1, 0, 2)[None])
            held = held.astype(getattr(mx, kind))
            first = min(position, 2048)
            cache.update_and_fetch(held[:, :, :first], held[:, :, :first])
            for late in range(first, position):
                cache.update_and_fetch(held[:, :, late : late + 1], held[:, :, late : late + 1])
        ours = [feed_model(model, model_caches(each), [7]) for each in (store.turned(), store)]
        assert not mv.differing(*ours).any(), "the control does not hold"
        assert not mv.differing(ours[0], feed_model(model, peer, [7])).any(), position


def test_mlx_lms_own_generation_runs_on_the_planes(model: Any) -> None:
    from mlx_lm.generate import generate_step

    wanted, _ = generate_greedily(model, fresh(), int(TOKENS[0]), 3)
    caches = fresh()
    prompt = mx.array(TOKENS[:1].astype(np.int32))
    found = [int(token) for token, _ in generate_step(prompt, model, max_tokens=3, prompt_cache=caches)]
    assert found == wanted.tolist()
    caches = fresh()
    prompt = mx.array(TOKENS[:70].astype(np.int32))
    steps = generate_step(prompt, model, max_tokens=4, prompt_cache=caches, prefill_step_size=24)
    found = [int(token) for token, _ in steps]
    again = fresh()
    chunked(model, again, [24, 24, 21])
    wanted, _ = generate_greedily(model, again, int(TOKENS[69]), 4)
    assert found == wanted.tolist()


def test_calls_that_are_not_evaluated_in_between(model: Any) -> None:
    geometry = mv.Geometry(5, 32, 2, 16, 512, 4)  # the last layer is a ring
    for held in (model, made(geometry=geometry), made("bfloat16", geometry)):
        own = SMALL if held is model else geometry
        wanted = feed_model(held, fresh(geometry=own), TOKENS[:45])
        caches = fresh(geometry=own)
        lazily = [held(mx.array([[int(token)]]), cache=caches)[0, -1] for token in TOKENS[:45]]
        found = np.stack([np.array(each.astype(mx.float32)) for each in lazily])
        assert not mv.differing(found, wanted).any()


def test_what_a_cache_says_of_itself(model: Any) -> None:
    caches = fresh()
    ring, grown = caches[0], caches[3]
    assert ring.empty()
    assert (ring.size(), ring.state) == (0, [])
    assert ring.nbytes == ring.plane.nbytes
    with pytest.raises(mv.InputError, match="holds no token"):
        ring.keys_and_values()
    feed_model(model, caches, TOKENS[:40], 20)
    assert (ring.offset, ring.size(), grown.size()) == (40, 32, 40)
    assert ring.meta_state == ("32", "32", "8", "8")
    feed_model(model, caches, TOKENS[40:41])
    assert ring.nbytes == ring.plane.nbytes + 2 * ring.plane.nbytes  # f32 of what is f16 there
    assert len(ring.state) == 2
    assert [rows.shape for rows in ring.keys_and_values()] == [(1, 2, 32, 16)] * 2
    assert "origin_physical=9" in repr(ring)
    assert bool(ring)
    assert not hasattr(ring, "bits")
    assert not hasattr(ring, "merge")
    for act, words in (
        (ring.to_quantized, "planes are f16"),
        (lambda: setattr(ring, "state", 1), "load"),
    ):
        with pytest.raises(mv.InputError, match=words):
            act()


def test_trim_before_the_wrap_and_after(model: Any) -> None:
    from mlx_lm.models.cache import can_trim_prompt_cache, trim_prompt_cache

    for geometry in (SMALL, mv.Geometry(5, 32, 2, 16, 512, 4)):  # of the second, the last layer is a ring
        held = model if geometry is SMALL else made(geometry=geometry)
        caches = fresh(geometry)
        feed_model(held, caches, TOKENS[:20])
        assert can_trim_prompt_cache(caches)
        assert trim_prompt_cache(caches, 5) == 5
        assert {cache.offset for cache in caches} == {15}
        ours = feed_model(held, caches, TOKENS[15:36])
        assert not mv.differing(ours, feed_model(held, fresh(geometry), TOKENS[:36])[15:]).any()
        assert not can_trim_prompt_cache(caches)
        assert trim_prompt_cache(caches, 1) == 0
        before = caches[0].plane.ring
        with pytest.raises(mv.InputError, match=r"the window of token 34 begins at 3.*tokens before 4 are"):
            caches[0].trim(1)
        assert caches[0].plane.ring == before
        assert caches[0].trim(0) == 0
        assert caches[3].trim(1) == 1
    filled = fresh()
    feed_model(model, filled, TOKENS[:32], 32)
    assert filled[0].is_trimmable()
    feed_model(model, filled, [1])
    assert not filled[0].is_trimmable()


def test_what_the_peer_does_on_trim_after_a_wrap(model: Any) -> None:
    peer = peer_caches(model)
    feed_model(model, peer, TOKENS[:40])
    assert not peer[0].is_trimmable()
    from mlx_lm.models.cache import trim_prompt_cache

    assert trim_prompt_cache(peer, 3) == 0  # asked through the module: nothing is trimmed
    assert peer[0].trim(3) == 3  # asked itself: it counts back, and keeps the rows of tokens 37 to 39
    assert peer[0].offset == 37
    held = np.array(peer[0].keys_and_values()[0])
    assert held.shape[2] == 32


def test_refusals_change_nothing(model: Any) -> None:
    caches = fresh(max_context=40)
    feed_model(model, caches, TOKENS[:38], 19)
    before = [cache.plane.raw_key().tobytes() for cache in caches]
    good = mx.zeros((1, 2, 1, 16))
    for words, keys, values in (
        ("one session", mx.zeros((2, 2, 1, 16)), mx.zeros((2, 2, 1, 16))),
        ("one session", good, mx.zeros((1, 2, 2, 16))),
        ("one session", mx.zeros((1, 2, 0, 16)), mx.zeros((1, 2, 0, 16))),
        ("2 heads of 8", mx.zeros((1, 2, 1, 8)), mx.zeros((1, 2, 1, 8))),
        ("float16 and bfloat16", good.astype(mx.int32), good.astype(mx.int32)),
    ):
        with pytest.raises(mv.InputError, match=words):
            caches[0].update_and_fetch(keys, values)
    with pytest.raises(mv.ContextExhausted, match="max_context 40"):
        feed_model(model, caches, TOKENS[:3], 3)
    assert [cache.plane.raw_key().tobytes() for cache in caches] == before
    caches[0].update_and_fetch(good, good)
    with pytest.raises(
        mv.InputError, match="positions 38 to 39: an earlier call of the model ended half way, or some"
    ):
        feed_model(model, caches, [1])


def test_a_window_that_is_not_the_rings_is_refused(model: Any) -> None:
    other = mv.Geometry(4, 48, 2, 16, 512, 4)
    with pytest.raises(mv.InputError, match="a window of 32 was asked for; layer 0 is a ring of 48"):
        feed_model(model, fresh(geometry=other), [1])
    short = fresh(geometry=other, max_context=40)
    feed_model(model, short, TOKENS[:30], 15)
    with pytest.raises(mv.InputError, match="past a window of 32"):
        feed_model(model, short, TOKENS[:3], 3)


def test_masks_are_the_peers(model: Any) -> None:
    caches, peer = fresh(), peer_caches(model)
    for size in (8, 8, 1, 15, 1, 4, 1, 40, 1):
        for ours, theirs in ((caches[0], peer[0]), (caches[3], peer[3])):
            window = 32 if ours is caches[0] else None
            mine, other = (c.make_mask(size, window_size=window, return_array=False) for c in (ours, theirs))
            assert type(mine) is type(other)
            assert mine is None or (isinstance(mine, str) and mine == other) or mx.array_equal(mine, other)
        feed_model(model, caches, TOKENS[:size], size)
        feed_model(model, peer, TOKENS[:size], size)
    assert caches[0].make_mask(1, return_array=True).shape == (1, 32)


def test_a_step_that_ends_early_puts_everything_back(model: Any) -> None:
    caches = fresh()
    store = caches[0].store
    feed_model(model, caches, TOKENS[:40])
    wanted = feed_model(model, model_caches(store.turned()), TOKENS[40:44])
    with pytest.raises(KeyboardInterrupt), store.step(40):
        feed_model(model, caches, [63])
        raise KeyboardInterrupt
    assert store.next_position == 40
    with pytest.raises(mv.InputError, match="2 tokens from 40 were given; the open step is of 1"):  # noqa: SIM117
        with store.step(40):
            feed_model(model, caches, [1, 2], 2)
    with pytest.raises(mv.InputError, match="a step of the store is open"):  # noqa: SIM117
        with store.step(40):
            model_caches(store)
    with store.step(40):
        first = feed_model(model, caches, TOKENS[40:41])
    rest = feed_model(model, caches, TOKENS[41:44])
    assert not mv.differing(np.concatenate([first, rest]), wanted).any()


def test_planes_changed_by_others_are_read_anew(model: Any) -> None:
    caches = fresh()
    feed_model(model, caches, TOKENS[:35])
    for plane in caches[0].store.planes:
        plane.reset()
    assert not mv.differing(
        feed_model(model, caches, TOKENS[:35]), feed_model(model, fresh(), TOKENS[:35])
    ).any()
    row = mv.seeded(1, 4, 32)
    caches[0].store.append(35, row, row)
    other = model_caches(caches[0].store.turned())
    assert not mv.differing(feed_model(model, caches, [5]), feed_model(model, other, [5])).any()


def test_two_lists_of_caches_over_one_store(model: Any) -> None:
    """What one stores and a step takes back is not read by the other."""
    store = mv.KvStore(SMALL, 256)
    first, second = model_caches(store), model_caches(store)
    feed_model(model, first, TOKENS[:35])
    with pytest.raises(ZeroDivisionError), store.step(35):
        feed_model(model, first, [60])
        raise ZeroDivisionError
    feed_model(model, second, [7])
    wanted = feed_model(model, model_caches(store.turned()), [9])
    assert not mv.differing(feed_model(model, first, [9]), wanted).any()


def laid_out(rows: Any, how: str) -> Any:
    """The same numbers, ``(1, n_kv_heads, n, head_dim)``, in another order in memory."""
    if how == "a slice":
        made = mx.stack([rows * 2, rows, rows * 3], axis=3).transpose(0, 2, 1, 3, 4)
        return mx.contiguous(made)[:, :, :, 1].transpose(0, 2, 1, 3)
    if how == "a part of a fused projection":
        _, n_heads, count, dim = rows.shape
        wide = mx.concatenate([rows.transpose(0, 2, 1, 3).reshape(1, count, -1)] * 3, axis=-1)
        return mx.split(wide, 3, axis=-1)[2].reshape(1, count, n_heads, dim).transpose(0, 2, 1, 3)
    return mx.contiguous(rows.swapaxes(2, 3)).swapaxes(2, 3)


@pytest.mark.parametrize("how", ["a slice", "a part of a fused projection", "turned"])
@pytest.mark.parametrize("kind", KINDS)
def test_k_and_v_that_do_not_lie_in_order(cpu_backend: str, kind: Any, how: str) -> None:
    five = mv.Geometry(5, 32, 2, 16, 512, 4)
    dense, other = (model_caches(mv.KvStore(five, 64, cpu_backend)) for _ in range(2))
    made = mx.array(mv.seeded(1, 1, 2, 40, 16)).astype(getattr(mx, kind))
    done = 0
    for size in (3, 1, 1, 5, 1, 1):
        rows = made[:, :, done : done + size]
        done += size
        for a, b in zip(dense, other, strict=True):
            wanted = a.update_and_fetch(mx.contiguous(rows), mx.contiguous(-rows))
            found = b.update_and_fetch(laid_out(rows, how), laid_out(-rows, how))
            assert all(mx.array_equal(x, y) for x, y in zip(wanted, found, strict=True))
            assert a.plane.raw_key().tobytes() == b.plane.raw_key().tobytes()


def test_what_was_read_before_a_trim_stays() -> None:
    """The last layer has none above it that would have evaluated its read."""
    cache = fresh()[3]
    row = mx.array(mv.seeded(1, 1, 2, 1, 16))
    for scale in (1, 2, 3):
        keys, _ = cache.update_and_fetch(row * scale, row)
    newest = keys[:, :, 2:3] * 1.0
    cache.trim(1)
    cache.update_and_fetch(row * 9, row)
    assert mx.array_equal(newest, (row * 3).astype(mx.float16).astype(mx.float32))


def test_a_chunk_that_fits_goes_on_in_the_copy(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    init = RowCopy.__init__

    def noted(self: RowCopy, *given: Any) -> None:
        made.append(self)
        init(self, *given)

    monkeypatch.setattr(RowCopy, "__init__", noted)
    caches = fresh()
    ours = chunked(model, caches, [4, 1, 3, 1, 2, 1])
    assert len(made) == 4
    assert not mv.differing(ours, chunked(model, peer_caches(model, rounded=True), [4, 1, 3, 1, 2, 1])).any()


def test_a_deep_copy_is_another_session(model: Any) -> None:
    caches = fresh()
    feed_model(model, caches, TOKENS[:35])
    branch = copy.deepcopy(caches)
    assert branch[0].store is branch[3].store is not caches[0].store
    wanted = feed_model(model, caches, TOKENS[35:38])
    assert not mv.differing(feed_model(model, branch, TOKENS[35:38]), wanted).any()


def test_a_ring_restored_elsewhere_before_it_is_full(model: Any) -> None:
    store = mv.KvStore(SMALL, 256)
    feed_model(model, model_caches(store), TOKENS[:20], 10)
    for rotation in (5, 20):
        turned = model_caches(store.turned(rotation))
        own = model_caches(store.turned())
        a, b = (chunked(model, caches, [6, 1, 1]) for caches in (turned, own))
        assert not mv.differing(a[0], b[0]).any()  # a chunk is read in temporal order then
        assert np.abs(a - b).max() < 1e-4
