"""Where mlx-lm is, and how to get it: its model's code and its own caches (§15.10)."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from muser_viz.errors import BackendUnavailable

HOW = "`pip install 'muser-viz[model]'`"
MODEL = "mlx_lm.models.muse_glimmer"


@cache
def library() -> tuple[Any, Any]:
    """mlx-lm's modules ``models.muse_glimmer`` and ``models.cache``.

    These two need MLX alone. Where the rest of mlx-lm does not import (it asks for
    transformers), they are loaded without it. BackendUnavailable where mlx-lm is
    absent or too old; it says what to do.
    """
    for load in (import_module, _without_the_package):
        try:
            return load(MODEL), load("mlx_lm.models.cache")
        except (ImportError, ValueError, OSError) as error:
            why = error
    raise BackendUnavailable(f"mlx-lm's Muse Glimmer does not import ({why}): {HOW}") from why


def _without_the_package(name: str) -> ModuleType:
    """Import a module of mlx-lm without running ``mlx_lm/__init__``, which imports all of it."""
    if "mlx_lm" in sys.modules:
        return import_module(name)
    found = find_spec("mlx_lm")
    if found is None:
        raise ImportError("no module named 'mlx_lm'")
    package = ModuleType("mlx_lm")
    package.__path__ = list(found.submodule_search_locations or ())
    sys.modules["mlx_lm"] = package
    try:
        return import_module(name)
    finally:
        del sys.modules["mlx_lm"]


def mlx_lm_version() -> str | None:
    """The version of mlx-lm here whose Muse Glimmer imports; None where there is none."""
    try:
        library()
        return metadata.version("mlx-lm")
    except (BackendUnavailable, metadata.PackageNotFoundError):
        return None
