"""The model built small, at its own shape, and from a folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx.utils import tree_flatten

import muser_viz as mv
from muser_viz.model.build import full_model, geometry_of, local_model, small_model
from muser_viz.model.mlx_lm import library

SMALL = mv.Geometry(4, 32, 2, 16, 512, 4)


def tiny(**changes: Any) -> Any:
    return small_model(SMALL, hidden=32, feed_forward=32, vocab=64, **changes)


def digest(model: Any) -> str:
    found = hashlib.sha256()
    for name, values in sorted(tree_flatten(model.parameters())):
        found.update(name.encode() + np.array(values.astype(mx.float32)).tobytes())
    return found.hexdigest()


def test_seeded_weights_are_the_same_on_every_machine() -> None:
    assert digest(tiny()) == digest(tiny())
    assert digest(tiny())[:16] == "87a09489da8dc4a9"
    assert digest(tiny(seed=1)) != digest(tiny())


def test_it_is_mlx_lms_own_class_with_its_pattern() -> None:
    module, _ = library()
    model = tiny(kind="float16")
    assert type(model) is module.Model
    assert model.args.layer_types == ["sliding_attention"] * 3 + ["full_attention"]
    assert [bool(layer.self_attn.use_rope) for layer in model.layers] == [True] * 3 + [False]
    assert geometry_of(model) == SMALL
    assert {values.dtype for _, values in tree_flatten(model.parameters())} == {mx.float16}


def test_its_own_geometry_is_the_chapters() -> None:
    module, _ = library()
    args = module.ModelArgs()

    class Model:
        pass

    Model.args = args  # type: ignore[attr-defined]
    assert geometry_of(Model) == mv.MUSE_GLIMMER


def test_another_order_of_layers_is_refused() -> None:
    model = tiny()
    model.args.layer_types = ["full_attention"] + ["sliding_attention"] * 3
    with pytest.raises(mv.InputError, match="layer 0 is of type 'full_attention'"):
        geometry_of(model)


@pytest.mark.parametrize(
    ("words", "changes"), [("hidden", {"hidden": 0}), ("kind", {"kind": "int8"}), ("seed", {"seed": -1})]
)
def test_refusals(words: str, changes: dict[str, Any]) -> None:
    with pytest.raises(mv.InputError, match=words):
        small_model(SMALL, **changes)
    with pytest.raises(mv.InputError, match="kind"):
        full_model(kind="int8")  # type: ignore[arg-type]


def test_the_full_model_at_a_trial_size() -> None:
    widths = {"hidden_size": 32, "intermediate_size": 32, "vocab_size": 64, "head_dim": 16}
    model = full_model(layers=4, num_attention_heads=4, **widths)
    assert {values.dtype for _, values in tree_flatten(model.parameters())} == {mx.bfloat16}
    assert digest(model) == digest(full_model(layers=4, num_attention_heads=4, **widths))
    said = model(mx.array([[1, 2, 3]]))
    assert said.shape == (1, 3, 64)
    assert bool(mx.isfinite(said).all())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tiny()
    config = {
        name: getattr(model.args, name)
        for name in ("hidden_size", "num_hidden_layers", "intermediate_size", "num_attention_heads")
    } | {
        name: getattr(model.args, name)
        for name in ("num_key_value_heads", "head_dim", "vocab_size", "sliding_window")
    }
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "muse_glimmer", **config}))
    weights = dict(tree_flatten(model.parameters()))
    names = sorted(weights)
    mx.save_safetensors(str(tmp_path / "a.safetensors"), {n: weights[n] for n in names[:5]})
    mx.save_safetensors(str(tmp_path / "b.safetensors"), {n: weights[n] for n in names[5:]})
    return tmp_path


def test_weights_from_a_folder(folder: Path) -> None:
    model = local_model(folder)
    assert digest(model) == digest(tiny())
    said = [each(mx.array([[1, 2]]), cache=each.make_cache()) for each in (model, tiny())]
    assert mx.array_equal(*said)


def test_folders_that_hold_no_such_model(folder: Path) -> None:
    with pytest.raises(mv.InputError, match=r"no readable config.json"):
        local_model(folder / "none")
    (folder / "b.safetensors").unlink()
    with pytest.raises(mv.InputError, match="do not fit"):
        local_model(folder)
    (folder / "a.safetensors").unlink()
    with pytest.raises(mv.InputError, match=r"no \*.safetensors"):
        local_model(folder)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(mv.InputError, match="'llama'"):
        local_model(folder)
