"""mlx-lm found, found without transformers, or said how to get."""

from __future__ import annotations

import subprocess
import sys

import pytest

import muser_viz as mv
from muser_viz.model.mlx_lm import library, mlx_lm_version

WITHOUT = """
import sys
{block}
import muser_viz as mv
from muser_viz.model.mlx_lm import library
try:
    model, cache = library()
    from muser_viz.model.build import small_model
    small_model(mv.Geometry(4, 32, 1, 8, 64, 1), hidden=8, feed_forward=8, vocab=8)
    print(model.Model.__module__, cache.KVCache.__name__, "mlx_lm" in sys.modules)
except mv.BackendUnavailable as error:
    print(error)
"""


def said(block: str) -> str:
    program = WITHOUT.format(block=block)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_it_is_here() -> None:
    model, cache = library()
    assert model.ModelArgs().num_hidden_layers == mv.MUSE_GLIMMER.n_layers
    assert model.ModelArgs().sliding_window == mv.MUSE_GLIMMER.sliding_window
    assert {"RotatingKVCache", "KVCache"} <= set(dir(cache))
    assert (mlx_lm_version() or "")[0].isdigit()


def test_without_transformers_the_two_modules_are_loaded_alone() -> None:
    words = said("sys.modules['transformers'] = None").split()
    assert words == ["mlx_lm.models.muse_glimmer", "KVCache", "False"]


def test_without_mlx_lm_it_says_how_to_get_it() -> None:
    blocked = "import importlib.util as u; f = u.find_spec\nsys.modules['mlx_lm'] = None"
    assert "pip install 'muser-viz[model]'" in said(blocked)


def test_too_old_an_mlx_lm_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muser_viz.model.mlx_lm.MODEL", "mlx_lm.models.no_such_model")
    library.cache_clear()
    try:
        with pytest.raises(mv.BackendUnavailable, match=r"muser-viz\[model\]"):
            library()
        assert mlx_lm_version() is None
    finally:
        library.cache_clear()
