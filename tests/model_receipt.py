"""The model on our planes and on mlx-lm's caches, as a dated receipt: run on a GPU, keep what it writes.

    python tests/model_receipt.py FOLDER              52 layers, the model's own widths, bf16, seeded weights
    python tests/model_receipt.py FOLDER --small      reduced widths, on any machine
    python tests/model_receipt.py FOLDER --parts control,ops
    python tests/model_receipt.py FOLDER --model PATH     weights from a local folder

writes ``DATE-DEVICE.json`` (device, versions, command, figures) and ``.log`` into
FOLDER, anew after every part, so that a run cut short leaves what it had.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import gc
import json
import platform
import random
import re
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

import muser_viz as mv
from muser_viz.model.build import full_model, geometry_of, local_model, small_model
from muser_viz.model.caches import model_caches
from muser_viz.model.mlx_lm import library, mlx_lm_version
from muser_viz.model.runs import peer_caches

PARTS = (
    "memory",
    "decode",
    "long",
    "buffers",
    "compare",
    "control",
    "ops",
    "layers",
    "roll",
    "full_precision",
)


@dataclass
class Run:
    """The model, its sizes, and what was found so far."""

    model: Any
    geometry: mv.Geometry
    small: bool
    until: float
    results: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    keep: Callable[[], None] = lambda: None

    @property
    def window(self) -> int:
        return self.geometry.sliding_window

    @property
    def chunk(self) -> int:
        return self.window // 4

    @property
    def roll(self) -> int:
        return 777 if self.window == 2048 else 7

    def say(self, text: str) -> None:
        """One line into the log, and to who waits."""
        self.lines.append(text)
        print(text, flush=True)

    def found(self, name: str, value: Any) -> None:
        """One figure."""
        self.results[name] = value
        self.say(f"{name}: {value}")
        self.keep()

    def store(self, context: int | None = None) -> mv.KvStore:
        return mv.KvStore(self.geometry, context or (16 if self.small else 4) * self.window)

    def tokens(self, first: int, count: int) -> Any:
        vocab = int(self.model.args.vocab_size)
        return mx.array(((37 * np.arange(first, first + count) + 11) % vocab).astype(np.int32))[None]

    def prefill(self, caches: Any, length: int) -> Any:
        """Give the model the first ``length`` tokens in chunks; the last token's logits, f32."""
        for first in range(0, length, self.chunk):
            said = self.model(self.tokens(first, min(self.chunk, length - first)), cache=caches)
            last = said[0, -1].astype(mx.float32)
            mx.eval(last, [cache.state for cache in caches])
        return np.array(last)

    def step(self, caches: Any, token: int = 5) -> Any:
        """The logits of one more token, f32; no memory is recycled, ``buffers`` shows why."""
        free()
        said = self.model(mx.array([[token]]), cache=caches)[0, -1].astype(mx.float32)
        mx.eval(said)
        return np.array(said)


def apart(a: Any, b: Any) -> str:
    """How two vectors of logits differ."""
    words = int(mv.differing(a, b).sum())
    moved = "moved" if a.argmax() != b.argmax() else "stays"
    return f"{words:,} of {a.size:,} differ, at most {np.abs(a - b).max():.3g}, argmax {moved}"


def free() -> None:
    gc.collect()
    mx.clear_cache()


def memory(run: Run) -> None:
    """The planes' bytes on the device against the bill, at three contexts."""
    contexts = (64, 256, 1024) if run.small else (2048, 32_768, 131_072)
    for context in contexts:
        free()
        before = mx.get_active_memory()
        store = run.store(context)
        caches = model_caches(store)
        free()
        device = mx.get_active_memory() - before
        bill = mv.footprint(run.geometry, context)
        held = sum(cache.nbytes for cache in caches)
        run.found(
            f"memory at {context:,}",
            f"bill {bill.allocated:,} B, planes {store.nbytes:,} B, with copies {held:,} B, "
            f"MLX holds {device:,} B more than before",
        )
        del store, caches


_order = random.Random(1)
BEFORE = 2
"""Tokens of a burst that are not timed: caches are cold, and a pipeline fills."""


def pipelined(run: Run, caches: Any, count: int) -> float:
    """Seconds of ``count`` tokens, the next step queued before the last is read, as mlx-lm generates."""
    token = mx.array([[5]])
    for done in range(BEFORE + count):
        if done == BEFORE:
            start = time.perf_counter()
        after = mx.argmax(run.model(token, cache=caches)[:, -1:], axis=-1)
        mx.async_eval(after)
        mx.eval(token)
        token = after
    mx.eval(token)
    return time.perf_counter() - start


def waited(run: Run, caches: Any, count: int) -> float:
    """Seconds of ``count`` tokens, each read before the next step."""
    token = mx.array([[5]])
    for done in range(BEFORE + count):
        if done == BEFORE:
            start = time.perf_counter()
        token = mx.argmax(run.model(token, cache=caches)[:, -1:], axis=-1)
        mx.eval(token)
    return time.perf_counter() - start


def in_turn(
    run: Run, act: Callable[..., float], held: dict[str, Any], bursts: int, count: int
) -> list[list[float]]:
    """Tokens a second of each in bursts, in a shuffled order in every turn, so that all meet the same."""
    speeds: dict[str, list[float]] = {name: [] for name in held}
    for _ in range(bursts):
        for name in _order.sample(list(held), len(held)):
            speeds[name].append(count / act(run, held[name], count))
    return list(speeds.values())


def decode(run: Run) -> None:
    """Tokens a second on each, prefill past the wrap and decode, three runs."""
    length, (bursts, count) = run.window + run.chunk, (15, 4) if run.small else (10, 16)
    makers: dict[str, Callable[[], Any]] = {
        "mlx-lm's caches": lambda: peer_caches(run.model),
        "our planes": lambda: model_caches(run.store()),
        "mlx-lm's caches, another set": lambda: peer_caches(run.model),  # the control: 1 but for the noise
    }
    if not run.small:
        makers["our planes, begun last"] = lambda: model_caches(run.store(), begin=())
    held: dict[str, Any] = {}
    prefill: dict[str, list[float]] = {name: [] for name in makers}
    for turn in range(4):  # the first one compiles kernels
        for name, make in makers.items():
            caches = held[name] = make()
            start = time.perf_counter()
            run.prefill(caches, length)
            if turn:
                prefill[name].append(length / (time.perf_counter() - start))
    for way, act in (("pipelined", pipelined), ("waited", waited)):
        in_turn(run, act, held, 2, 3)
        faster(run, f"decode {way}", held, [in_turn(run, act, held, bursts, count) for _ in range(3)])
    turns = [[[each] for each in turn] for turn in zip(*prefill.values(), strict=True)]
    faster(run, f"prefill of {length:,}", held, turns)


def faster(run: Run, what: str, held: dict[str, Any], runs: list[list[list[float]]]) -> None:
    """Tokens a second of each, and how many times as fast as the first: the middle of each run's turns."""
    middle = statistics.median
    turns = dict(zip(held, zip(*runs, strict=True), strict=True))
    for name, of_one in turns.items():
        run.found(f"{what}, tokens a second on {name}", [round(middle(each), 2) for each in of_one])
    peer, *others = turns
    for name in others:
        ratios = [
            middle(own / other for own, other in zip(*both, strict=True))
            for both in zip(turns[name], turns[peer], strict=True)
        ]
        run.found(f"{what}, {name}: times as fast as on {peer}", [round(each, 3) for each in ratios])


def long(run: Run) -> None:
    """Decode after a long context of seeded rows, given to the caches without the model."""
    for context in (256, 1024) if run.small else (32_768, 129_024):
        held = {
            "mlx-lm's caches": peer_caches(run.model),
            "our planes": model_caches(run.store(context + run.window)),
        }
        args, kind = run.model.args, run.model.model.layers[0].input_layernorm.weight.dtype
        for first in range(0, context, run.window):
            shape = (1, args.num_key_value_heads, run.window, args.head_dim)
            rows = [mx.random.normal(shape, mx.float32, key=mx.random.key(first + n)) for n in range(2)]
            for caches in held.values():
                for cache in caches:
                    cache.update_and_fetch(*(each.astype(kind) for each in rows))
                mx.eval([cache.state for cache in caches])
        in_turn(run, pipelined, held, 1, 2)
        runs = [in_turn(run, pipelined, held, *((3, 2) if run.small else (10, 6))) for _ in range(3)]
        faster(run, f"decode pipelined after {context:,}", held, runs)
        del held
        free()


def buffers(run: Run) -> None:
    """Fused attention of one query on the same words, in memory of the right size and in recycled memory.

    MLX on CUDA takes cuDNN's kernel for one query where K and V are slices of arrays of a
    multiple of 256 rows that fill their memory, and its own where they do not.
    """
    args, rows = run.model.args, run.window
    kind = run.model.model.layers[0].input_layernorm.weight.dtype
    shape = (1, args.num_key_value_heads, rows + 256, args.head_dim)
    keys = [mx.random.key(n) for n in range(3)]
    held = [np.array(mx.random.normal(shape, mx.float32, key=key)) for key in keys[:2]]
    query = mx.random.normal((1, args.num_attention_heads, 1, args.head_dim), key=keys[2]).astype(kind)

    def attended(more: int) -> Any:
        """With K and V in memory that arrays with ``more`` rows had before, or in new memory."""
        f32 = [mx.array(each) for each in held]
        mx.eval(f32, query)
        mx.clear_cache()
        if more:
            larger = [mx.zeros((*shape[:2], shape[2] + more, shape[3]), kind) for _ in f32]
            mx.eval(larger)
            del larger
            mx.synchronize()
        made = [each.astype(kind) for each in f32]
        mx.eval(made)
        key, value = (each[:, :, : rows + 1] for each in made)
        out = mx.fast.scaled_dot_product_attention(query, key, value, scale=0.1).astype(mx.float32)
        return np.array(out)

    first = attended(0)
    for name, more in (("new memory again", 0), ("memory of an array with 32 rows more", 32)):
        words = [int(mv.differing(first, attended(more)).sum()) for _ in range(3)]
        run.found(f"fused attention, one query, the same words in {name}: words that differ", words)


def compare(run: Run) -> None:
    """The logits of each on the same tokens: the same rotation after the prefill, then another."""
    for name in ("fused", "plain"):
        with attention(name):
            for length in (run.window, run.window + run.chunk):
                compared(run, length, f"{name} attention, ")
    run.found("where ours and mlx-lm's part, same rotation, fused attention", parted(run))


def compared(run: Run, length: int, how: str) -> None:
    """After a prefill of ``length``, and after three tokens more."""
    ours, peer, rounded = model_caches(run.store()), peer_caches(run.model), peer_caches(run.model, True)
    free()
    a, b, c = (run.prefill(caches, length) for caches in (ours, peer, rounded))
    run.found(f"{how}prefill of {length:,}, ours against mlx-lm's", apart(a, b))
    run.found(f"{how}prefill of {length:,}, ours against mlx-lm's fed f16-rounded rows", apart(a, c))
    run.found(
        f"{how}prefill of {length:,}, control, mlx-lm's twice",
        apart(run.prefill(peer_caches(run.model), length), b),
    )
    for token in (5, 6, 7):
        a, b, c = (run.step(caches, token) for caches in (ours, peer, rounded))
    where = "same rotation" if length % run.window == 0 else "another rotation"
    run.found(f"{how}third token after {length:,} ({where}), ours against mlx-lm's", apart(a, b))
    run.found(f"{how}third token after {length:,} ({where}), ours against rounded", apart(a, c))


def parted(run: Run) -> str:
    """The first layer whose attention gives other bits on our planes than on mlx-lm's, fed rounded rows."""
    module, _ = library()
    inner = module.scaled_dot_product_attention
    seen: list[list[Any]] = []

    def watched(queries: Any, keys: Any, values: Any, *rest: Any, **named: Any) -> Any:
        out = inner(queries, keys, values, *rest, **named)
        seen[-1].append((queries, keys, values, out))
        return out

    module.scaled_dot_product_attention = watched
    try:
        for caches in (model_caches(run.store()), peer_caches(run.model, True)):
            seen.append([])
            run.prefill(caches, run.window)
            seen[-1].clear()
            run.step(caches)
    finally:
        module.scaled_dot_product_attention = inner
    for layer, pair in enumerate(zip(*seen, strict=True)):
        words = [
            int(mv.differing(*(np.array(side.astype(mx.float32)) for side in sides)).sum())
            for sides in zip(*pair, strict=True)
        ]
        if any(words):
            rows = pair[0][1].shape[2]
            where = f"layer {layer}, {rows:,} rows"
            return f"{where}: words of q, k, v that differ {words[:3]}, of its output {words[3]}"
    return "nowhere"


def filled(run: Run) -> mv.KvStore:
    """A session past its wrap."""
    store = run.store()
    run.prefill(model_caches(store), run.window + run.chunk)
    return store


def plain_attention(queries: Any, keys: Any, values: Any, cache: Any, scale: float, mask: Any) -> Any:
    """Attention from matmul and softmax, in place of MLX's fused kernel. One token, or a mask."""
    del cache
    batch, heads, count, dim = queries.shape
    groups = keys.shape[1]
    query = queries.reshape(batch, groups, heads // groups, count, dim) * scale
    scores = query @ keys[:, :, None].swapaxes(-1, -2)
    if isinstance(mask, str):
        rows = keys.shape[2]
        mask = mx.arange(rows - count, rows)[:, None] >= mx.arange(rows)[None]
    if mask is not None:
        scores = mx.where(mask, scores, mx.finfo(scores.dtype).min)
    weights = mx.softmax(scores.astype(mx.float32), axis=-1).astype(values.dtype)
    return (weights @ values[:, :, None]).reshape(batch, heads, count, dim)


@contextlib.contextmanager
def attention(name: str) -> Iterator[None]:
    """The model with another attention, for a while."""
    module, _ = library()
    before = module.scaled_dot_product_attention
    if name == "plain":
        module.scaled_dot_product_attention = plain_attention
    try:
        yield
    finally:
        module.scaled_dot_product_attention = before


def control(run: Run) -> None:
    """The same run twice: whole, then one step from one prefilled state, with each attention."""
    for name in ("fused", "plain"):
        with attention(name):
            stores = [filled(run) for _ in range(2)]
            rows = [[plane.raw_key() for plane in store.planes] for store in stores]
            unequal = [i for i, pair in enumerate(zip(*rows, strict=True)) if mv.differing(*pair).any()]
            run.found(
                f"control, prefill twice, {name} attention",
                f"layers with unequal K rows: {unequal or 'none'}",
            )
            said = [run.step(model_caches(stores[0].turned())) for _ in range(4)]
            run.found(
                f"control, one step from one state, {name} attention",
                [apart(said[0], other) for other in said[1:]],
            )
            del stores, rows
            free()


def twice(run: Run, name: str, act: Callable[[], Any], times: int = 6) -> bool:
    """Run one operation several times on the same inputs; whether its bits were others at any."""
    outputs = []
    for _ in range(times):
        out = act().astype(mx.float32)
        mx.eval(out)
        outputs.append(np.array(out))
    unequal = [int(mv.differing(outputs[0], out).sum()) for out in outputs[1:]]
    run.say(f"op {name}: words that differ from the first run's: {unequal} of {outputs[0].size:,}")
    return any(unequal)


def ops(run: Run) -> None:
    """Each operation of a layer, several times on the same inputs: which one breaks the control?"""
    layer, head = run.model.model.layers[0], run.model.lm_head
    attn, mlp, args = layer.self_attn, layer.mlp, run.model.args
    kind = layer.input_layernorm.weight.dtype
    key = mx.random.key(7)
    repeated: dict[str, bool] = {}

    def drawn(*shape: int) -> Any:
        return mx.random.normal(shape, mx.float32, key=key).astype(kind)

    for count in (1, 8, run.chunk):
        x = drawn(1, count, args.hidden_size)
        wide = drawn(1, count, args.intermediate_size)
        heads = drawn(1, count, args.num_attention_heads * args.head_dim)
        for name, act in {
            "q_proj": lambda x=x: attn.q_proj(x),
            "k_proj": lambda x=x: attn.k_proj(x),
            "o_proj": lambda heads=heads: attn.o_proj(heads),
            "up_proj": lambda x=x: mlp.up_proj(x),
            "down_proj": lambda wide=wide: mlp.down_proj(wide),
            "rms_norm": lambda x=x: layer.input_layernorm(x),
            "rope": lambda heads=heads, n=count: attn.rope(
                heads.reshape(1, n, -1, args.head_dim).transpose(0, 2, 1, 3), offset=99
            ),
            "lm_head": lambda x=x: head(x[:, -1:]),
        }.items():
            repeated[f"{name}, {count} rows"] = twice(run, f"{name}, {count} rows", act)
        if count == 8:
            continue
        query = drawn(1, args.num_attention_heads, count, args.head_dim)
        for rows in (run.window, 2 * run.window) if count == 1 else (run.window, run.window + count - 1):
            k, v = (drawn(1, args.num_key_value_heads, rows, args.head_dim) for _ in range(2))
            masks: dict[str, Any] = {"none": None} if count == 1 else {"causal": "causal"}
            if rows > run.window and count > 1:
                masks = {"array": mx.arange(count)[:, None] + run.window > mx.arange(rows)[None]}
            for mask_name, mask in masks.items():
                for name, read in (
                    ("fused", mx.fast.scaled_dot_product_attention),
                    ("plain", plain_attention),
                ):
                    extra = {} if name == "fused" else {"cache": None}
                    called = f"attention {name}, {count} queries, {rows} rows, mask {mask_name}"
                    repeated[called] = twice(
                        run,
                        called,
                        lambda r=read, e=extra, q=query, k=k, v=v, m=mask: r(q, k, v, scale=0.1, mask=m, **e),
                    )
    others = [name for name, other in repeated.items() if other]
    run.found(
        "operations that gave other bits when repeated",
        f"{len(others)} of {len(repeated)}, six runs each" + "".join(f"; {name}" for name in others),
    )


def layers(run: Run) -> None:
    """One step from one state, three times: the first layer whose output has other bits."""
    store = filled(run)
    traces = []
    cls = type(run.model.model.layers[0])
    before = cls.__call__
    for _ in range(3):
        outputs: list[Any] = []

        def noted(self: Any, x: Any, mask: Any = None, cache: Any = None, seen: list[Any] = outputs) -> Any:
            seen.append(before(self, x, mask, cache))
            return seen[-1]

        cls.__call__ = noted
        try:
            logits = run.step(model_caches(store.turned()))
        finally:
            cls.__call__ = before
        traces.append([*(np.array(out.astype(mx.float32)) for out in outputs), logits])
    found = []
    for other in traces[1:]:
        pairs = enumerate(zip(traces[0], other, strict=True))
        found.append(next((i for i, pair in pairs if mv.differing(*pair).any()), "none"))
    run.found(f"first layer whose output has other bits, of {len(traces[0]) - 1} and the logits", found)


def roll(run: Run) -> None:
    """Every ring turned by some rows, from one prefilled state, beside the control."""
    for name in ("fused", "plain"):
        with attention(name):
            store = filled(run)
            own = store.planes[0].origin_physical
            said = [run.step(model_caches(store.turned(own))) for _ in range(2)]
            turned = [run.step(model_caches(store.turned((own + run.roll) % run.window))) for _ in range(2)]
            rings = len(run.geometry.sliding_layers)
            run.found(f"control before the roll, {name} attention", apart(*said))
            run.found(f"control after the roll, {name} attention", apart(*turned))
            run.found(f"{rings} rings rolled by {run.roll} rows, {name} attention", apart(said[0], turned[0]))
            del store
            free()


def full_precision(run: Run) -> None:
    """Eight layers at the same widths in f32: control and roll."""
    model = reduced("float32") if run.small else full_model(layers=8, kind="float32")
    geometry = geometry_of(model)
    part = Run(model, geometry, run.small, run.until, run.results, run.lines, run.keep)
    store = filled(part)
    own = store.planes[0].origin_physical
    said = [part.step(model_caches(store.turned(own))) for _ in range(3)]
    turned = part.step(model_caches(store.turned((own + part.roll) % part.window)))
    run.found(f"f32, {geometry.n_layers} layers, control", [apart(said[0], other) for other in said[1:]])
    run.found(f"f32, {geometry.n_layers} layers, rings rolled by {part.roll}", apart(said[0], turned))
    peer = peer_caches(model, rounded=True)
    ours = model_caches(part.store())
    a, b = (part.prefill(caches, part.window) for caches in (ours, peer))
    run.found(f"f32, {geometry.n_layers} layers, prefill, ours against rounded", apart(a, b))
    a, b = (part.step(caches) for caches in (ours, peer))
    run.found(f"f32, {geometry.n_layers} layers, decode, ours against rounded", apart(a, b))


def reduced(kind: Any) -> Any:
    """The model at reduced widths."""
    return small_model(mv.Geometry(8, 64, 2, 32, 4096, 8), hidden=64, feed_forward=128, vocab=512, kind=kind)


def made(asked: argparse.Namespace) -> Any:
    """The model that was asked for."""
    if asked.model is not None:
        return local_model(asked.model)
    return reduced(asked.kind) if asked.small else full_model(layers=asked.layers, kind=asked.kind)


def main() -> int:
    """Run the parts that were asked for and keep what they gave, good or bad."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--kind", default=None, choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--layers", type=int, default=52)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seconds", type=float, default=540, help="begin no part after this")
    asked = parser.parse_args()
    asked.kind = asked.kind or ("float32" if asked.small else "bfloat16")
    began = time.perf_counter()
    if mv.backends()["cuda"].available:
        mv.use_backend("cuda")
    backend = mv.KvPlane(32, 1, 1).backend
    model = made(asked)
    geometry = geometry_of(model)
    run = Run(model, geometry, asked.small, began + asked.seconds)
    device = mv.backends()[backend].detail
    weights = f"weights of {asked.model.name}" if asked.model else "seeded weights"
    arguments = model.args
    receipt = {
        "date": datetime.date.today().isoformat(),
        "backend": backend,
        "device": device,
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": {
            "mlx": metadata.version("mlx"),
            "mlx-lm": mlx_lm_version() or "carried",
            "numpy": metadata.version("numpy"),
        },
        "muser_viz": mv.__version__,
        "command": "python tests/model_receipt.py FOLDER"
        + (" --small" if asked.small else "")
        + (f" --parts {asked.parts}" if asked.parts != ",".join(PARTS) else ""),
        "model": f"{geometry.n_layers} layers, hidden {arguments.hidden_size}, vocabulary "
        f"{arguments.vocab_size:,}, window {geometry.sliding_window:,}, {asked.kind}, {weights}",
        "results": run.results,
    }
    name = re.sub(r"[^a-z0-9]+", "-", device.split(",")[0].lower()).strip("-")
    asked.folder.mkdir(parents=True, exist_ok=True)
    stem = asked.folder / f"{receipt['date']}-{name}"

    def keep() -> None:
        stem.with_suffix(".json").write_text(json.dumps(receipt, indent=1) + "\n", encoding="utf-8")
        stem.with_suffix(".log").write_text("\n".join(run.lines) + "\n", encoding="utf-8")

    run.keep = keep
    run.say(f"{receipt['model']}; {device}; built in {time.perf_counter() - began:.1f} s")
    failed = 0
    for part in asked.parts.split(","):
        if time.perf_counter() > run.until:
            run.say(f"{part}: not begun, {asked.seconds:.0f} s are over")
            continue
        start = time.perf_counter()
        try:
            globals()[part](run)
        except Exception as error:
            failed += 1
            run.say(traceback.format_exc())
            run.found(f"{part} failed", f"{type(error).__name__}: {error}")
        run.say(f"-- {part}: {time.perf_counter() - start:.1f} s, peak {mx.get_peak_memory():,} B")
    keep()
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
