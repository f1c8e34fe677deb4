"""A launch of a store kernel as data: what it is told, and what each thread of its grid does (§15.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz import devices
from muser_viz.checks import POSITION_LIMIT, floats, whole
from muser_viz.devices.source import catalogue
from muser_viz.errors import InputError
from muser_viz.layout import Layout
from muser_viz.plane import KvPlane

ONE_ROW, BATCH = "muser_kv_store_f16", "muser_kv_store_batch_f16"

THREAD = np.dtype(
    [
        ("thread", "<i8"),
        ("stores", "?"),
        ("source_row", "<i8"),
        ("element", "<i8"),
        ("source", "<i8"),
        ("row", "<i8"),
        ("cell", "<i8"),
    ]
)
"""One thread: the chunk's element that it reads, the cell that it writes; -1 where it stores nothing."""

F16 = npt.NDArray[np.float16]

_OF_LAYOUT = ("kv_dim", "capacity", "head_dim", "head_major")


@dataclass(frozen=True)
class StoreLaunch:
    """What a store kernel is launched with: ``scalars`` by name is all that it is told (§15.4).

    ``layout`` says which buffers belong to it; the kernel knows of it only what
    is among the scalars.
    """

    kernel: str
    scalars: Mapping[str, int]
    layout: Layout

    @property
    def grid(self) -> int:
        """Threads that store: an element each."""
        return self.scalars["kv_dim"] * self.scalars.get("source_count", 1)

    def but(self, **scalars: int) -> StoreLaunch:
        """The same launch, told something else.

        InputError for a name that the kernel does not take, for one that is the
        layout's (``kv_dim``, ``capacity``, ...), and for no 32-bit number.
        """
        free = [name for name in self.scalars if name not in _OF_LAYOUT]
        for name in scalars:
            if name not in free:
                raise InputError(f"{name!r} cannot be told {self.kernel} anew; {', '.join(free)} can")
        checked = {name: whole(name, value, 0, POSITION_LIMIT - 1) for name, value in scalars.items()}
        return replace(self, scalars={**self.scalars, **checked})

    def threads(self, count: int | None = None) -> npt.NDArray[np.void]:
        """What each of ``count`` threads does, by index arithmetic: ``THREAD``, ``(count,)``.

        Left out, the count is the grid. Sums wrap at 32 bits, as in the kernel.
        InputError for a count that is no whole number.
        """
        told = self.scalars
        count = self.grid if count is None else whole("count", count, 0, POSITION_LIMIT - 1)
        table = np.full(count, -1, THREAD)
        table["thread"] = np.arange(count)
        table["stores"] = table["thread"] < self.grid
        thread = table["thread"][table["stores"]]
        in_chunk, element = np.divmod(thread, told["kv_dim"])
        if self.kernel == ONE_ROW:
            source_row, row = in_chunk, np.full(thread.size, told["write_index"])
        else:
            source_row = told["source_first"] + in_chunk
            age = (told["start_position"] + source_row - told["origin_logical"]) % POSITION_LIMIT
            row = (told["origin_physical"] + age) % POSITION_LIMIT % told["capacity"]
        cell = row * told["kv_dim"] + element
        if told.get("head_major", 0):
            kv_head, dim = np.divmod(element, told["head_dim"])
            cell = (kv_head * told["capacity"] + row) * told["head_dim"] + dim
        source = source_row * told["kv_dim"] + element
        for name, values in (
            ("source_row", source_row),
            ("element", element),
            ("source", source),
            ("row", row),
            ("cell", cell),
        ):
            table[name][table["stores"]] = values
        return table

    def run(
        self, keys: Any, values: Any, threads: int | None = None, backend: str | None = None
    ) -> tuple[F16, F16]:
        """Run the real kernel on zeroed buffers; the K and the V buffer (f16, ``layout.shape``).

        ``keys``, ``values``: f32, ``(n, kv_dim)``, the chunk. ``threads``: how many to start, the
        grid or more; ``numpy`` starts none. InputError for another shape or dtype, for fewer
        threads than the grid, and where a thread would read or write outside, or two the same cell.
        """
        keys = floats("keys", keys, (None, self.layout.kv_dim))
        values = floats("values", values, keys.shape)
        threads = self.grid if threads is None else whole("threads", threads, self.grid, POSITION_LIMIT - 1)
        self._check(keys.size)
        device = devices.device(backend)
        if self.kernel == ONE_ROW and device.name == "numpy":  # a whole row at once, and no other
            keys, values = keys[:1], values[:1]
        empty = np.zeros(self.layout.shape, np.float16)
        key_cache, value_cache = device.buffer(empty), device.buffer(empty)
        if threads:
            told = [
                self.scalars[buffer.name]
                for buffer in catalogue()[self.kernel].buffers
                if buffer.kind == "scalar"
            ]
            device.launch(
                self.kernel, threads, [device.put(keys), device.put(values), key_cache, value_cache, *told]
            )
        shape = self.layout.shape
        return (
            np.asarray(device.get(key_cache)).reshape(shape),
            np.asarray(device.get(value_cache)).reshape(shape),
        )

    def _check(self, chunk_size: int) -> None:
        """InputError for what a kernel would do without a word, and should not be made to."""
        told = self.scalars
        if self.kernel == BATCH and (
            told["start_position"] + told["source_first"] < told["origin_logical"]
            or told["origin_physical"] >= self.layout.capacity
            or told["start_position"] + told["source_first"] + told["source_count"] > POSITION_LIMIT
        ):
            raise InputError(f"{dict(told)} is of no ring: a row before its front, or an origin outside it")
        table = self.threads()
        for name, size in (("source", chunk_size), ("cell", self.layout.size)):
            far = int(table[name].max(initial=-1))
            if far >= size:
                raise InputError(
                    f"a thread would go to {name} {far} of {size}; no kernel checks that, so it is not run"
                )
        if np.unique(table["cell"]).size < table.size:
            raise InputError("two threads would write one cell; which is last is not known, so it is not run")


def store_launch(plane: KvPlane, count: int | None = None) -> StoreLaunch:
    """What the plane's next ``append`` launches, or its next ``append_batch`` of ``count`` tokens (§15.4).

    The plane is not changed. InputError for a count below 1.
    """
    ring, layout = plane.ring, plane.layout
    if count is None and not layout.head_major:
        scalars = {"kv_dim": layout.kv_dim, "write_index": ring.append(ring.next_position)}
        return StoreLaunch(ONE_ROW, scalars, layout)
    count = whole("count", 1 if count is None else count, 1)
    reserved = ring.append_batch(ring.next_position, count)
    scalars = {
        "kv_dim": layout.kv_dim,
        "source_first": reserved.source_first,
        "source_count": reserved.source_count,
        "start_position": reserved.start_position,
        "capacity": layout.capacity,
        "origin_logical": reserved.origin_logical,
        "origin_physical": reserved.origin_physical,
        "head_dim": layout.head_dim,
        "head_major": int(layout.head_major),
    }
    return StoreLaunch(BATCH, scalars, layout)
