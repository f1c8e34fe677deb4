"""Muse Glimmer, built: small with seeded weights, at its own widths, or from a folder (§15.10)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np

from muser_viz.checks import whole
from muser_viz.devices.protocol import Kind
from muser_viz.errors import InputError
from muser_viz.geometry import MUSE_GLIMMER, Geometry
from muser_viz.inputs import seeded
from muser_viz.model.mlx_lm import library


def geometry_of(model: Any) -> Geometry:
    """What decides a store's planes, from the arguments of a Muse Glimmer model.

    InputError where its layers are not in the chapter's order, three sliding and one full.
    """
    args = model.args
    window = int(args.sliding_window)
    geometry = Geometry(
        n_layers=args.num_hidden_layers,
        sliding_window=window,
        n_kv_heads=args.num_key_value_heads,
        head_dim=args.head_dim,
        context_limit=args.max_position_embeddings,
        n_query_heads=args.num_attention_heads,
        full_every=MUSE_GLIMMER.full_every,
    )
    for layer, kind in enumerate(args.layer_types):
        if (kind == "full_attention") != (layer in geometry.full_layers):
            raise InputError(
                f"layer {layer} is of type {kind!r}; a store has every {geometry.full_every}th layer full: "
                "give a model with Muse Glimmer's order of layers"
            )
    return geometry


def _arguments(geometry: Geometry, **widths: int) -> Any:
    module, _ = library()
    return module.ModelArgs(
        num_hidden_layers=geometry.n_layers,
        num_attention_heads=geometry.n_query_heads,
        num_key_value_heads=geometry.n_kv_heads,
        head_dim=geometry.head_dim,
        max_position_embeddings=geometry.context_limit,
        sliding_window=geometry.sliding_window,
        **widths,
    )


def _leaves(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else None
    if items is None:
        yield name, tree
        return
    for key, value in items:
        yield from _leaves(value, f"{name}.{key}" if name else str(key))


def _scale(name: str, shape: tuple[int, ...]) -> float:
    """Deviation of a seeded weight: norms near 1, projections that keep a vector's size."""
    if len(shape) == 1:
        return 0.125
    return 1.0 if "embed_tokens" in name else float(shape[-1] ** -0.5)


def small_model(
    geometry: Geometry | None = None,
    *,
    hidden: int = 64,
    feed_forward: int = 128,
    vocab: int = 256,
    kind: Kind = "float32",
    seed: int = 0,
) -> Any:
    """mlx-lm's Muse Glimmer at reduced widths, its weights made from ``seed``: the same on every machine.

    Default geometry: 8 layers (three sliding, one full, twice), a window of 64, 2 KV
    heads of 32 and 4 query heads. ``kind`` is the type of weights and activations.
    Not a trained model: its tokens mean nothing. InputError for a width below 1;
    BackendUnavailable without mlx-lm.
    """
    import mlx.core as mx

    geometry = geometry or Geometry(8, 64, 2, 32, 4096, 4)
    if kind not in get_args(Kind):
        raise InputError(f"kind {kind!r} was asked for; there are {', '.join(get_args(Kind))}")
    module, _ = library()
    model = module.Model(
        _arguments(
            geometry,
            hidden_size=whole("hidden", hidden, 1),
            intermediate_size=whole("feed_forward", feed_forward, 1),
            vocab_size=whole("vocab", vocab, 2),
        )
    )
    seed = whole("seed", seed, 0, (1 << 32) - 4096)
    weights = []
    for number, (name, given) in enumerate(sorted(_leaves(model.parameters()))):
        values = seeded(seed + number, *given.shape) * np.float32(_scale(name, tuple(given.shape)))
        if name == "model.norm.weight":
            values += np.float32(1)
        weights.append((name, mx.array(values).astype(getattr(mx, kind))))
    model.load_weights(weights)
    mx.eval(model.parameters())
    return model


def full_model(*, layers: int = 52, kind: Kind = "bfloat16", seed: int = 0, **widths: int) -> Any:
    """Muse Glimmer at its own widths, 27.85 B parameters in 52 layers, weights drawn by MLX from ``seed``.

    They are made on the device that MLX computes on, one tensor after another (about
    56 GB in bf16), and are that device's own: no other has to draw the same.
    ``widths`` replaces arguments of mlx-lm's ModelArgs, for a trial at a smaller size.
    """
    import mlx.core as mx

    module, _ = library()
    if kind not in get_args(Kind):
        raise InputError(f"kind {kind!r} was asked for; there are {', '.join(get_args(Kind))}")
    model = module.Model(module.ModelArgs(num_hidden_layers=whole("layers", layers, 1), **widths))
    dtype = getattr(mx, kind)
    leaves = sorted(_leaves(model.parameters()))
    keys = mx.random.split(mx.random.key(seed), len(leaves))
    for (name, given), key in zip(leaves, keys, strict=True):
        values = mx.random.normal(given.shape, dtype, scale=_scale(name, tuple(given.shape)), key=key)
        if name == "model.norm.weight":
            values = values + 1
        values = values.astype(dtype)
        mx.eval(values)
        model.load_weights([(name, values)], strict=False)
    return model


def local_model(folder: str | os.PathLike[str]) -> Any:
    """Muse Glimmer with real weights from a folder that has ``config.json`` and ``*.safetensors``.

    Nothing is fetched. Quantized weights are taken as mlx-lm takes them. InputError
    where the folder holds no such model; BackendUnavailable without mlx-lm.
    """
    import mlx.core as mx
    from mlx import nn

    module, _ = library()
    path = Path(folder)
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} has no readable config.json ({error}): give the folder of a downloaded model"
        ) from None
    kind = config.get("model_type") if isinstance(config, dict) else None
    if not str(kind).startswith("muse_glimmer"):
        raise InputError(f"{path} holds a model of type {kind!r}; 'muse_glimmer' is run here")
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise InputError(f"{path} has no *.safetensors: give the folder of a downloaded model")
    weights: dict[str, Any] = {}
    for file in files:
        loaded: Any = mx.load(str(file))
        weights |= loaded
    model = module.Model(module.ModelArgs.from_dict(config))
    weights = model.sanitize(weights)
    if quantization := config.get("quantization"):
        nn.quantize(
            model,
            group_size=quantization["group_size"],
            bits=quantization["bits"],
            class_predicate=lambda name, part: hasattr(part, "to_quantized") and f"{name}.scales" in weights,
        )
    try:
        model.load_weights(list(weights.items()))
    except ValueError as error:
        raise InputError(f"{path}: the weights do not fit its config.json ({error})") from None
    return model
