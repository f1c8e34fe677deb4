"""``host``: the kernel files compiled as C++ and driven over the grid by the CPU."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz.devices import compile as compiler
from muser_viz.devices.protocol import DTYPES, Fresh
from muser_viz.devices.source import Kernel, catalogue
from muser_viz.errors import InputError, KernelError
from muser_viz.geometry import MUSE_GLIMMER
from muser_viz.interrupts import finished
from muser_viz.layout import Index

_C_TYPES: dict[str, Any] = {"uint": ctypes.c_uint32, "float": ctypes.c_float}
_WIDTHS = {"kv_dim": MUSE_GLIMMER.kv_dim, "head_dim": MUSE_GLIMMER.head_dim}
_PARALLEL_FROM = 4096
"""Threads of a grid from which it is split over the cores; each thread's work is independent."""


def driver(kernel: Kernel) -> str:
    """C++ text that exports ``run_<kernel>(begin, end, buffers...)`` over a range of the grid.

    At the chapter's widths the compiler is told them, so that it divides by constants.
    """
    declared = ", ".join(
        f"{p.base} {p.name}"
        if p.kind == "scalar"
        else f"{'const ' if p.kind == 'in' else ''}{p.base} *{p.name}"
        for p in kernel.buffers
    )

    def loop(widths: Mapping[str, int]) -> str:
        passed = ", ".join(str(widths.get(p.name, p.name)) for p in kernel.buffers)
        return f"for (uint x = begin; x < end; ++x) {kernel.name}({passed}, x);"

    widths = {p.name: _WIDTHS[p.name] for p in kernel.buffers if p.name in _WIDTHS}
    usual = " && ".join(f"{name} == {width}" for name, width in widths.items()) or "false"
    return (
        f'extern "C" void run_{kernel.name}(uint begin, uint end, {declared})\n'
        f"{{\n    if ({usual}) {{\n        {loop(widths)}\n    }} else {{\n        {loop({})}\n    }}\n}}\n"
    )


@cache
def _function(name: str) -> tuple[Kernel, Callable[..., None]]:
    kernel = catalogue()[name]
    siblings = [other for other in catalogue().values() if other.path == kernel.path]
    source = f'#include "{kernel.path}"\n' + "".join(driver(k) for k in siblings)
    function = getattr(_loaded(kernel.path.stem, source, kernel.path), f"run_{name}")
    function.restype = None
    function.argtypes = [ctypes.c_uint32, ctypes.c_uint32] + [
        _C_TYPES[p.base] if p.kind == "scalar" else ctypes.c_void_p for p in kernel.buffers
    ]
    return kernel, function


def _loaded(name: str, source: str, path: Path) -> ctypes.CDLL:
    """The compiled kernels of a file, in this process."""
    built = compiler.shared_object(name, source, (path,))
    try:
        return ctypes.CDLL(str(built))
    except OSError as error:
        raise KernelError(
            f"{path.name}: the compiled kernels cannot be loaded ({error}): "
            "set MUSER_VIZ_CACHE to another folder"
        ) from error


def workers() -> int:
    """Cores used for one launch: ``MUSER_VIZ_THREADS``, or all that this process may use.

    InputError where the variable is no whole number from 1 to 1024.
    """
    asked = os.environ.get("MUSER_VIZ_THREADS")
    if asked:
        if not re.fullmatch(r"[1-9]\d{0,3}", asked, re.ASCII) or int(asked) > 1024:
            raise InputError(
                f"MUSER_VIZ_THREADS is {asked!r}; set it to a number from 1 to 1024, or unset it"
            )
        return int(asked)
    available = getattr(os, "sched_getaffinity", None)
    return len(available(0)) if available else os.cpu_count() or 1


@cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="muser_viz")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


class Arrays:
    """Buffers and device arrays that are NumPy arrays."""

    def put(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A copy, C-ordered."""
        return np.array(array, order="C")

    def buffer(self, contents: npt.NDArray[np.float16]) -> npt.NDArray[np.float16]:
        """A copy, C-ordered."""
        return np.array(contents, dtype=np.float16, order="C")

    def get(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A copy."""
        return array.copy()

    def half(self, buffer: npt.NDArray[np.float16]) -> npt.NDArray[np.float16]:
        """The buffer itself, to be read at once."""
        return buffer

    def read(self, parts: Sequence[tuple[npt.NDArray[np.float16], Index]]) -> list[npt.NDArray[np.float16]]:
        """Copies of slices."""
        return [buffer[index].copy() for buffer, index in parts]

    def write(self, parts: Sequence[tuple[npt.NDArray[np.float16], Index, npt.NDArray[np.float16]]]) -> None:
        """Assign slices."""
        for buffer, index, values in parts:
            buffer[index] = values


class HostDevice(Arrays):
    """Kernels as machine code of this CPU."""

    name = "host"

    def __init__(self) -> None:
        self._compiler = compiler.find()

    def describe(self) -> str:
        """The compiler and the cores."""
        return f"{self._compiler}, {workers()} cores"

    def launch(self, name: str, grid: int, arguments: Sequence[Any]) -> list[npt.NDArray[Any]]:
        """Run ``grid`` threads, over the cores where there are many; done on return."""
        kernel, function = _function(name)
        fresh: list[npt.NDArray[Any]] = []
        passed: list[Any] = []
        for parameter, given in zip(kernel.buffers, arguments, strict=True):
            if parameter.kind == "scalar":
                passed.append(given)
                continue
            dtype = DTYPES[parameter.base]
            array = np.empty(given.shape, dtype) if isinstance(given, Fresh) else given
            if array is not given:
                fresh.append(array)
            if array.dtype != dtype or not array.flags.c_contiguous:
                raise KernelError(f"{name}: {parameter.name} is {array.dtype}; it takes C-ordered {dtype}")
            passed.append(array.ctypes.data)
        cores = workers() if grid >= _PARALLEL_FROM else 1
        if cores == 1:
            function(0, grid, *passed)
        else:
            self._over_the_cores(cores, grid, function, passed, [*arguments, *fresh])
        return fresh

    @staticmethod
    def _over_the_cores(
        cores: int, grid: int, function: Callable[..., None], passed: list[Any], arrays: list[Any]
    ) -> None:
        """Run a grid in parts, one a core; on an error or an interrupt, not before every part has ended."""

        def part(first: int, last: int, _held: list[Any] = arrays) -> None:
            function(first, last, *passed)

        cuts = [grid * each // cores for each in range(cores + 1)]
        parts: list[Future[None]] = []
        try:
            for first, last in pairwise(cuts):
                parts.append(_pool(cores).submit(part, first, last))
            for ended in parts:
                ended.result()
        except BaseException:
            finished(lambda: wait(parts))
            raise
