"""The Metal path without a Mac: the source that MLX generates, compiled through the shim and run.

MLX traces a Metal call inside ``export_function`` on any machine and prints the
exact Metal source that it would hand to Apple's compiler. A ``CapturedDevice``
is the ``metal`` backend with that source run by the CPU, in MLX's own memory.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from muser_viz.devices import compile as compiler
from muser_viz.devices.mlx_gpu import MlxDevice, function
from muser_viz.devices.protocol import KINDS, Kind
from muser_viz.model.row_copy import words_of


def metal_source(kernel: Any, inputs: list[Any], shape: dict[str, Any]) -> str:
    """What MLX generates for one call."""

    def call(*arrays: Any) -> Any:
        return kernel(inputs=list(arrays), **shape, verbose=True)

    sys.stdout.flush()
    kept = os.dup(1)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 1)
        try:
            mx.export_function(str(Path(folder, "call.mlxfn")), call, *inputs)
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)
        said.seek(0)
        printed = said.read().decode()
    found = re.search(r"```\n(.*?)```", printed, re.S)
    assert found is not None, printed
    return found[1]


@cache
def _compiled(source: str) -> Any:
    """A function that runs the source over a grid: (grid, buffers in order)."""
    signature = re.search(r"\[\[kernel\]\] void (\w+)\(\n(.*?)\) \{\n", source, re.S)
    assert signature is not None, source
    parameters = [line.strip().rstrip(",") for line in signature[2].strip().splitlines()]
    assert parameters[-1] == "uint3 thread_position_in_grid [[thread_position_in_grid]]"
    types = []
    for index, line in enumerate(parameters[:-1]):
        found = re.fullmatch(rf"(?:const )?(?:device|constant) (\w+)\* \w+ \[\[buffer\({index}\)\]\]", line)
        assert found is not None, line
        types.append(found[1])
    passed = ", ".join(f"({kind} *)buffers[{i}]" for i, kind in enumerate(types))
    driver = (
        '#define MUSER_VIZ_MLX_GENERATED\n#include "metal_stdlib"\nusing namespace metal;\n'
        f'{source}\nextern "C" void run(uint grid, void **buffers)\n'
        f"{{ for (uint x = 0; x < grid; ++x) {signature[1]}({passed}, uint3{{x, 0, 0}}); }}\n"
    )
    built = compiler.shared_object("captured", driver, ())
    names = {"float16_t": "float16", "bfloat16_t": "uint16", "float": "float32"}
    return ctypes.CDLL(str(built)).run, [names.get(t, "uint32") for t in types]


class CapturedDevice(MlxDevice):
    """``metal``, its generated source run by the CPU."""

    def __init__(self) -> None:
        super().__init__("metal")
        self.traced = lambda launch: launch  # what runs at once leaves nothing to trace
        self.calls: list[str] = []
        """The kernels that ran, in order."""
        self.sources: dict[tuple[Any, ...], str] = {}

    def kernel(self, *named: Any) -> Callable[..., list[Any]]:
        return lambda **given: self.call(*named, **given)

    def watch(self, look: Callable[[list[Any]], Any]) -> list[Any]:
        """What ``look`` says of the inputs of every launch from now on, in order."""
        said: list[Any] = []
        call = self.call

        def watched(*launched: Any, inputs: list[Any], **shape: Any) -> list[Any]:
            said.append(look(inputs))
            return call(*launched, inputs=inputs, **shape)

        self.call = watched  # type: ignore[method-assign]
        return said

    def call(
        self,
        name: str,
        in_place: tuple[bool, ...],
        kind: Kind,
        fence: bool,
        fixed: tuple[int, ...],
        inputs: list[Any],
        **shape: Any,
    ) -> list[Any]:
        """Run a kernel's generated source."""
        self.calls.append(name)
        mx.eval(inputs)
        inputs = [array if memoryview(array).c_contiguous else mx.contiguous(array) for array in inputs]
        mx.eval(inputs)
        key = (name, in_place, kind, fence, fixed, *((array.dtype, array.size < 8) for array in inputs))
        if key not in self.sources:
            kernel = function(name, "metal", in_place, kind, fence, fixed)
            self.sources[key] = metal_source(kernel, inputs, shape)
        run, dtypes = _compiled(self.sources[key])
        made = [
            np.empty(size, np.uint32 if dtype == mx.uint32 else KINDS[kind])
            for size, dtype in zip(shape["output_shapes"], shape["output_dtypes"], strict=True)
        ]
        arrays = [*(words_of(array) for array in inputs), *made]
        assert [array.dtype for array in arrays] == [np.dtype(dtype) for dtype in dtypes]
        run(shape["grid"][0], (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)))
        return [
            mx.array(array).view(dtype) for array, dtype in zip(made, shape["output_dtypes"], strict=True)
        ]
