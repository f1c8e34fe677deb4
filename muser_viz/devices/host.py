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
from muser_viz.devices.protocol import DTYPES, KINDS, Fresh, Kind, word
from muser_viz.devices.source import Kernel, Parameter, catalogue
from muser_viz.errors import InputError, KernelError
from muser_viz.geometry import MUSE_GLIMMER
from muser_viz.interrupts import finished
from muser_viz.layout import Index

_KIND_NAMES = {"float32": "float", "float16": "half", "bfloat16": "bfloat"}
_WIDTHS = {"kv_dim": MUSE_GLIMMER.kv_dim, "head_dim": MUSE_GLIMMER.head_dim}
_PARALLEL_FROM = 4096
"""Threads of a grid from which it is split over the cores; each thread's work is independent."""


def _declared(p: Parameter, kind: Kind) -> str:
    """A buffer as a parameter of a C++ function, ``float`` arrays in ``kind``."""
    if p.kind == "scalar":
        return f"{p.base} {p.name}"
    base = _KIND_NAMES[kind] if p.base == "float" else p.base
    return f"{'const ' if p.kind == 'in' else ''}{base} *{p.name}"


def driver(kernel: Kernel, kind: Kind = "float32") -> str:
    """C++ text that exports ``run_<kernel>(begin, end, given)`` over a range of the grid.

    ``given``: a 64-bit word for each buffer in order, an address or a scalar's bits.
    At the chapter's widths the compiler is told them, so that it divides by constants.
    """

    def loop(widths: Mapping[str, int]) -> str:
        passed = ", ".join(str(widths.get(p.name, p.name)) for p in kernel.buffers)
        return f"for (uint x = begin; x < end; ++x) {kernel.name}({passed}, x);"

    def taken(i: int, p: Parameter) -> str:
        declared = _declared(p, kind)
        if p.kind == "scalar":
            return f"    const {declared} = as_type<{p.base}>(uint(given[{i}]));\n"
        return f"    {declared} = ({declared.rpartition('*')[0]}*)given[{i}];\n"

    widths = {p.name: _WIDTHS[p.name] for p in kernel.buffers if p.name in _WIDTHS}
    usual = " && ".join(f"{name} == {width}" for name, width in widths.items()) or "false"
    return (
        f'extern "C" void run_{kernel.name}(uint begin, uint end, const __UINT64_TYPE__ *given)\n{{\n'
        + "".join(taken(i, p) for i, p in enumerate(kernel.buffers))
        + f"    if ({usual}) {{\n        {loop(widths)}\n    }} else {{\n        {loop({})}\n    }}\n}}\n"
    )


def text(path: Path, kind: Kind) -> str:
    """C++ text of a kernel file and its drivers: the file as it is, or its bodies for another ``kind``."""
    kernels = [kernel for kernel in catalogue().values() if kernel.path == path]
    drivers = "".join(driver(kernel, kind) for kernel in kernels)
    if kind == "float32":
        return f'#include "{path}"\n{drivers}'
    bodies = "".join(
        f"static inline void {k.name}({', '.join(_declared(p, kind) for p in k.buffers)}, "
        f"{k.thread_type} {k.thread_index})\n{{{k.body}}}\n"
        for k in kernels
    )
    return f"#include <metal_stdlib>\nusing namespace metal;\n{kernels[0].helpers}\n{bodies}{drivers}"


@cache
def _function(name: str, kind: Kind) -> tuple[Kernel, Callable[..., None]]:
    kernel = catalogue()[name]
    stem = kernel.path.stem + ("" if kind == "float32" else f"-{kind}")
    function = getattr(_loaded(stem, text(kernel.path, kind), kernel.path), f"run_{name}")
    function.restype = None
    function.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p]
    return kernel, function


def address(array: Any) -> int:
    """Where the elements of a C-ordered array of NumPy or MLX begin; the quick way is for writable ones."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError):
        if not memoryview(array).c_contiguous:
            raise
        return int(np.asarray(array).ctypes.data)


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

    @staticmethod
    def code(name: str, kind: Kind) -> Callable[..., None]:
        """A kernel's machine code, ``code(begin, end, given)`` as ``driver`` has it: it checks nothing."""
        return _function(name, kind)[1]

    def launch(
        self, name: str, grid: int, arguments: Sequence[Any], kind: Kind = "float32"
    ) -> list[npt.NDArray[Any]]:
        """Run ``grid`` threads, over the cores where there are many; done on return."""
        kernel, function = _function(name, kind)
        fresh: list[npt.NDArray[Any]] = []
        passed: list[int] = []
        for parameter, given in zip(kernel.buffers, arguments, strict=True):
            if parameter.kind == "scalar":
                passed.append(word(parameter.base, given))
                continue
            dtype = KINDS[kind] if parameter.base == "float" else DTYPES[parameter.base]
            array = np.empty(given.shape, dtype) if isinstance(given, Fresh) else given
            if array is not given:
                fresh.append(array)
            if array.dtype != dtype or not array.flags.c_contiguous:
                raise KernelError(f"{name}: {parameter.name} is {array.dtype}; it takes C-ordered {dtype}")
            passed.append(address(array))
        words = (ctypes.c_uint64 * len(passed))(*passed)
        cores = workers() if grid >= _PARALLEL_FROM else 1
        if cores == 1:
            function(0, grid, words)
        else:
            self._over_the_cores(cores, grid, function, words, [*arguments, *fresh])
        return fresh

    @staticmethod
    def _over_the_cores(
        cores: int, grid: int, function: Callable[..., None], words: Any, arrays: list[Any]
    ) -> None:
        """Run a grid in parts, one a core; on an error or an interrupt, not before every part has ended."""

        def part(first: int, last: int, _held: list[Any] = arrays) -> None:
            function(first, last, words)

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
