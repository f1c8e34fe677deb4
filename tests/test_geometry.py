from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import muser_viz as mv
from muser_viz.geometry import MIN_CAPACITY

GLIMMER = mv.MUSE_GLIMMER
SLIDING, FULL = mv.LayerKind.SLIDING_ROPE, mv.LayerKind.FULL_NOPE


def test_the_model_of_the_chapter() -> None:
    assert dataclasses.asdict(GLIMMER) == {
        "n_layers": 52,
        "sliding_window": 2048,
        "n_kv_heads": 2,
        "head_dim": 128,
        "context_limit": 131_072,
        "n_query_heads": 32,
        "full_every": 4,
    }
    assert GLIMMER.kv_dim == 256
    assert mv.Geometry() == GLIMMER


def test_39_layers_slide_and_13_grow() -> None:
    assert len(GLIMMER.sliding_layers) == 39
    assert GLIMMER.full_layers == (3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47, 51)
    assert sorted(GLIMMER.sliding_layers + GLIMMER.full_layers) == list(range(52))


@pytest.mark.parametrize("layer", range(52))
def test_every_fourth_layer_is_full(layer: int) -> None:
    assert GLIMMER.kind(layer) is (FULL if layer % 4 == 3 else SLIDING)


@pytest.mark.parametrize(
    ("max_context", "sliding", "full"),
    [
        (1, 32, 32),
        (31, 32, 32),
        (32, 32, 32),
        (33, 33, 33),
        (2047, 2047, 2047),
        (2048, 2048, 2048),
        (2049, 2048, 2049),
        (131_072, 2048, 131_072),
    ],
)
def test_capacities(max_context: int, sliding: int, full: int) -> None:
    assert {GLIMMER.capacity(layer, max_context) for layer in GLIMMER.sliding_layers} == {sliding}
    assert {GLIMMER.capacity(layer, max_context) for layer in GLIMMER.full_layers} == {full}


def test_a_small_window_still_gets_the_least_capacity() -> None:
    small = mv.Geometry(sliding_window=8)
    assert MIN_CAPACITY == 32
    assert small.capacity(0, 1000) == 32
    assert small.capacity(3, 1000) == 1000


@pytest.mark.parametrize("layer", [-1, 52, 1.0, True, "3", None])
def test_what_is_no_layer(layer: Any) -> None:
    for ask in (lambda: GLIMMER.kind(layer), lambda: GLIMMER.capacity(layer, 100)):
        with pytest.raises(mv.InputError, match=r"^layer is .*from 0 to 51$"):
            ask()


@pytest.mark.parametrize("max_context", [0, -1, 131_073, 2048.0, True, None])
def test_what_is_no_context(max_context: Any) -> None:
    with pytest.raises(mv.InputError, match=r"^max_context is .*from 1 to 131072$"):
        GLIMMER.capacity(0, max_context)


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(mv.Geometry)])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2"])
def test_fields_are_whole_and_at_least_one(field: str, value: Any) -> None:
    with pytest.raises(mv.InputError, match=f"^{field} is .*from 1( to 4294967296)?$"):
        mv.Geometry(**{field: value})


def test_a_geometry_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        GLIMMER.n_layers = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("geometry", "sliding", "full"),
    [
        (mv.Geometry(n_layers=3), (0, 1, 2), ()),
        (mv.Geometry(n_layers=3, full_every=1), (), (0, 1, 2)),
        (mv.Geometry(n_layers=5, full_every=2), (0, 2, 4), (1, 3)),
    ],
)
def test_other_patterns_of_layers(
    geometry: mv.Geometry, sliding: tuple[int, ...], full: tuple[int, ...]
) -> None:
    assert geometry.sliding_layers == sliding
    assert geometry.full_layers == full


def test_kv_dim_is_heads_times_head_dim() -> None:
    assert mv.Geometry(n_kv_heads=4, head_dim=5).kv_dim == 20


def test_query_heads_are_a_multiple_of_kv_heads() -> None:
    with pytest.raises(mv.InputError, match="n_query_heads is 32 for 3 KV heads"):
        mv.Geometry(n_kv_heads=3)
