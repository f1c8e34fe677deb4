from __future__ import annotations

from itertools import pairwise

import pytest

import muser_viz as mv
from muser_viz.layout import Layout
from muser_viz.layout_cells import cells, runs
from muser_viz.ring import Ring

SLIDING, FULL = mv.LayerKind.SLIDING_ROPE, mv.LayerKind.FULL_NOPE


def counted(layout: Layout, ring: Ring, heads: list[int]) -> int:
    """Runs, from every element's offset, oldest token first."""
    rows = [ring.physical(ring.origin_logical + i) for i in range(ring.len)]
    pairs = (
        [(h, r) for h in heads for r in rows] if layout.head_major else [(h, r) for r in rows for h in heads]
    )
    offsets = [
        layout.offset(r, h * layout.head_dim + dim) for h, r in pairs for dim in range(layout.head_dim)
    ]
    return sum(b != a + 1 for a, b in pairwise(offsets)) + 1 if offsets else 0


@pytest.mark.parametrize("head_major", [False, True])
@pytest.mark.parametrize("tokens", [0, 1, 5, 8, 9, 13, 16])
def test_runs_are_counted_from_offsets(head_major: bool, tokens: int) -> None:
    layout, ring = Layout(8, 2, 4, head_major), Ring(8)
    ring.append_batch(0, tokens)
    assert runs(layout, ring) == counted(layout, ring, [0, 1])
    for head in (0, 1):
        assert runs(layout, ring, head) == counted(layout, ring, [head])


def test_the_four_cells_of_the_handoff() -> None:
    found = cells(mv.KvStore(max_context=64), 130_814)
    assert [(c.kind, c.layout, c.planes, c.nbytes, c.head_runs, c.window_runs) for c in found] == [
        (SLIDING, "token-major", 39, 81_788_928, 2_048, 2),
        (SLIDING, "head-major", 0, 0, 2, 4),
        (FULL, "token-major", 0, 0, 130_814, 1),
        (FULL, "head-major", 13, 1_741_395_968, 1, 2),
    ]
    bill = mv.footprint(context=130_814)
    assert sum(c.nbytes for c in found) == bill.live == 1_823_184_896


def test_a_geometry_of_one_class() -> None:
    found = cells(mv.KvStore(mv.Geometry(n_layers=2, context_limit=64), 64), 40)
    assert [c.planes for c in found] == [2, 0, 0, 0]


@pytest.mark.parametrize("context", [0, 131_073, 1.5])
def test_what_is_no_context(context: float) -> None:
    with pytest.raises(mv.InputError, match=r"^context is "):
        cells(mv.KvStore(max_context=64), context)  # type: ignore[arg-type]


def test_a_head_that_is_none() -> None:
    with pytest.raises(mv.InputError, match=r"^kv_head is 2"):
        runs(Layout(8), Ring(8), 2)
