"""``metal`` and ``cuda``: the kernels' bodies through MLX, in place, behind a fence.

MLX has no custom kernel that writes an input. A Buffer is handed in as an
input and written through a cast, which MLX does not see. So each Buffer carries
a fence, a one-element array: every kernel that touches the Buffer takes the
fence as an input and gives a new one back, and MLX orders the two launches by
it (on Metal with a barrier over all buffers, which is the chapter's
store-then-barrier of §15.8). MLX's own operations take no fence: before one
reads a Buffer, the fence is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from muser_viz.devices.protocol import DTYPES, Fresh
from muser_viz.devices.source import Kernel, catalogue
from muser_viz.layout import Index

Platform = Literal["metal", "cuda"]

_THREADS = 256
_LEAST = 8
"""MLX hands arrays of fewer elements over as ``constant``, which no cast makes writable."""
_CUDA_HEADER = """
using uint = unsigned int;
using half = __half;
#define device
#define thread
#define constant const
template <typename To>
__device__ inline To as_type(uint bits)
{
    return __uint_as_float(bits);
}
"""


def generated(kernel: Kernel, platform: Platform, in_place: tuple[bool, ...]) -> dict[str, Any]:
    """What MLX's kernel constructor is handed: names, header, and source around the body.

    ``in_place`` says of each output, in order, whether it is a Buffer. Scalars
    travel as words of one uint32 array.
    """
    inputs: list[str] = []
    outputs: list[str] = []
    prelude: list[str] = []
    space = "device " if platform == "metal" else ""
    places = iter(in_place)
    words = 0
    for parameter in kernel.buffers:
        if parameter.kind == "scalar":
            word = f"muser_words[{words}]"
            value = f"as_type<float>({word})" if parameter.base == "float" else word
            prelude.append(f"const {parameter.base} {parameter.name} = {value};")
            words += 1
        elif parameter.kind == "in":
            inputs.append(parameter.name)
        elif next(places):
            given = f"{parameter.name}_given"
            inputs.append(given)
            pointer = f"{space}{parameter.base} *"
            prelude.append(f"{pointer}{parameter.name} = ({pointer}){given};")
        else:
            outputs.append(parameter.name)
    position = "thread_position_in_grid.x" if platform == "metal" else "blockIdx.x * blockDim.x + threadIdx.x"
    prelude.append(f"const uint {kernel.thread_index} = {position};")
    prelude.append(f"if ({kernel.thread_index} == 0) muser_fence[0] = 1;")
    helpers = kernel.helpers
    if platform == "cuda":
        helpers = _CUDA_HEADER + re.sub(r"^static inline", "__device__ static inline", helpers, flags=re.M)
    return {
        "name": kernel.name + "".join("_p" if place else "_n" for place in in_place),
        "input_names": [*inputs, "muser_words", "muser_before"],
        "output_names": [*outputs, "muser_fence"],
        "header": helpers + "\n",
        "source": "\n".join(["", *prelude, kernel.body]),
    }


@cache
def function(name: str, platform: Platform, in_place: tuple[bool, ...]) -> Any:
    """The MLX custom kernel for a kernel of the package."""
    import mlx.core as mx

    construct = mx.fast.metal_kernel if platform == "metal" else mx.fast.cuda_kernel
    return construct(**generated(catalogue()[name], platform, in_place))


class FencedBuffer:
    """An f16 ``mlx.core.array`` that kernels write in place, and its fence."""

    def __init__(self, contents: npt.NDArray[np.float16]) -> None:
        import mlx.core as mx

        self.shape = contents.shape
        flat = np.ascontiguousarray(contents).reshape(-1)
        if flat.size < _LEAST:
            flat = np.concatenate([flat, np.zeros(_LEAST - flat.size, np.float16)])
        self.array = mx.array(flat)
        self.fence = mx.zeros((1,), dtype=mx.uint32)
        mx.eval(self.array, self.fence)

    @property
    def size(self) -> int:
        """Elements, without padding."""
        return int(np.prod(self.shape))


class MlxDevice:
    """Kernels on a GPU that MLX drives."""

    in_graph = True
    """Whether a launch is a node of MLX's graph, so that it can be traced."""

    def __init__(self, platform: Platform) -> None:
        import mlx.core as mx

        self.name: str = platform
        self._platform: Platform = platform
        self._mx = mx

    def describe(self) -> str:
        """The GPU and MLX's version."""
        info = self._mx.device_info(self._mx.gpu)
        return f"{info.get('device_name', 'GPU')}, MLX {metadata.version('mlx')}"

    def put(self, array: npt.NDArray[Any]) -> Any:
        """An ``mlx.core.array`` with a copy."""
        return self._mx.array(np.ascontiguousarray(array))

    def buffer(self, contents: npt.NDArray[np.float16]) -> FencedBuffer:
        """A FencedBuffer with a copy."""
        return FencedBuffer(contents)

    def get(self, array: Any) -> npt.NDArray[Any]:
        """A NumPy copy, after every launch so far."""
        return np.array(self.half(array) if isinstance(array, FencedBuffer) else array)

    def half(self, buffer: FencedBuffer) -> Any:
        """The Buffer as an ``mlx.core.array`` in its shape; its launches have ended."""
        self._mx.eval(buffer.fence)
        return buffer.array[: buffer.size].reshape(buffer.shape)

    def read(self, parts: Sequence[tuple[FencedBuffer, Index]]) -> list[npt.NDArray[np.float16]]:
        """NumPy copies of slices, with one wait for all of them."""
        self._mx.eval([buffer.fence for buffer, _ in parts])
        taken = [self.half(buffer)[index] for buffer, index in parts]
        self._mx.eval(taken)
        return [np.array(part) for part in taken]

    def write(self, parts: Sequence[tuple[FencedBuffer, Index, npt.NDArray[np.float16]]]) -> None:
        """Put slices back, through a copy of the Buffer on the host."""
        for buffer, index, values in parts:
            contents = self.get(buffer)
            contents[index] = values
            restored = FencedBuffer(contents)
            buffer.array, buffer.fence = restored.array, restored.fence

    def launch(self, name: str, grid: int, arguments: Sequence[Any]) -> list[Any]:
        """Queue a kernel over ``grid`` threads and return its outputs; does not wait."""
        mx = self._mx
        kernel = catalogue()[name]
        inputs: list[Any] = []
        words: list[Any] = []
        touched: list[FencedBuffer] = []
        in_place: list[bool] = []
        fresh: list[Fresh] = []
        for parameter, given in zip(kernel.buffers, arguments, strict=True):
            if parameter.kind == "scalar":
                words.append(DTYPES[parameter.base].type(given))
                continue
            if parameter.kind == "out":
                in_place.append(isinstance(given, FencedBuffer))
            if isinstance(given, Fresh):
                fresh.append(given)
            elif isinstance(given, FencedBuffer):
                touched.append(given)
                inputs.append(given.array)
            else:
                inputs.append(given)
        packed = np.concatenate([np.atleast_1d(word).view(np.uint32) for word in words])
        fences = {id(buffer.fence): buffer.fence for buffer in touched}
        before = list(fences.values())
        ordered = (
            mx.concatenate(before) if len(before) > 1 else before[0] if before else mx.zeros((1,), mx.uint32)
        )
        outputs: list[Any]
        *outputs, fence = self._call(
            name,
            tuple(in_place),
            [*inputs, mx.array(packed), ordered],
            output_shapes=[*(output.shape for output in fresh), (1,)],
            output_dtypes=[*(mx.float32 for _ in fresh), mx.uint32],
            grid=(grid, 1, 1),
            threadgroup=(min(grid, _THREADS), 1, 1),
        )
        for buffer in touched:
            buffer.fence = fence
        mx.async_eval(fence, *outputs)
        return outputs

    def _call(self, name: str, in_place: tuple[bool, ...], inputs: list[Any], **shape: Any) -> list[Any]:
        """Hand a kernel to MLX: its outputs, the new fence last."""
        return list(function(name, self._platform, in_place)(inputs=inputs, **shape))
