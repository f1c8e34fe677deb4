"""Walking a case of ``cases/ring.json`` over a ring or a plane, checking every step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import muser_viz as mv
from muser_viz.ring import Ring, spans

STATE = ("len", "origin_logical", "origin_physical", "next_position")


def check_state(thing: Any, step: dict[str, Any]) -> None:
    """Every field after a step."""
    for name in STATE:
        if name in step:
            assert getattr(thing, name) == step[name], name


def walk_ring(ring: Ring, case: dict[str, Any]) -> None:
    """Each step of a case on a ring: rows, live sources, fields, refusals."""
    for step in case["steps"]:
        count = step.get("count")
        if "error" in step:
            refused(ring, step)
        elif step["op"] == "append":
            assert ring.append(step["position"]) == step["row"]
        else:
            got = ring.append_batch(step["position"], count)
            assert (got.source_first, got.source_count) == (step["source_first"], step["source_count"])
            assert (got.origin_logical, got.origin_physical) == (
                step["origin_logical"],
                step["origin_physical"],
            )
            if step["rows"] is not None:
                first = step["position"] + got.source_first
                assert [ring.physical(first + i) for i in range(got.source_count)] == step["rows"]
        check_state(ring, step)
    if case["occupants"] is not None:
        assert ring.occupants().tolist() == case["occupants"]


def refused(ring: Ring, step: dict[str, Any]) -> None:
    """A step that must be refused, with the position that was expected."""
    before = ring.copy()
    with pytest.raises(mv.CacheDiscontinuity) as caught:
        if step["op"] == "append":
            ring.append(step["position"])
        else:
            ring.append_batch(step["position"], step["count"])
    assert (caught.value.expected, caught.value.got) == (step["expected"], step["got"])
    assert ring == before


class Expected:
    """The bytes that a plane must have, kept row by row from the occupants."""

    def __init__(self, capacity: int, n_kv_heads: int, head_dim: int) -> None:
        self.shape = (capacity, n_kv_heads, head_dim)
        self.key = np.zeros(self.shape, np.float16)
        self.value = np.zeros(self.shape, np.float16)

    def put(self, first_row: int, keys: np.ndarray, values: np.ndarray) -> None:
        """Rows from ``first_row`` on, modulo the capacity."""
        done = 0
        for part in spans(first_row, len(keys), self.shape[0]):
            n = part.stop - part.start
            for cache, rows in ((self.key, keys), (self.value, values)):
                cache[part] = rows[done : done + n].reshape(n, *self.shape[1:])
            done += n

    def check(self, plane: mv.KvPlane) -> None:
        """Byte for byte, whole buffers."""
        order = (1, 0, 2) if plane.head_major else (0, 1, 2)
        for raw, wanted in ((plane.raw_key(), self.key), (plane.raw_value(), self.value)):
            assert raw.tobytes() == np.ascontiguousarray(wanted.transpose(order)).tobytes()
