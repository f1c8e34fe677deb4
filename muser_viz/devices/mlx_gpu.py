"""``metal`` and ``cuda``: the kernels' bodies through MLX, in place, behind a fence.

MLX has no custom kernel that writes an input. A Buffer is handed in as an
input and written through a cast, which MLX does not see. So each Buffer carries
a fence, an array that the last launch made: every kernel that touches the Buffer
takes the fence as an input and gives a new one back, and MLX orders the two launches by
it (on Metal with a barrier over all buffers, which is the chapter's
store-then-barrier of §15.8). MLX's own operations take no fence: before one
reads a Buffer, the fence is evaluated. Where a model runs over planes, a kernel
of ours reads them too, into arrays that MLX made, so that nothing is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from importlib import metadata
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from muser_viz.devices.protocol import Fresh, Kind, word
from muser_viz.devices.source import Kernel, catalogue
from muser_viz.layout import Index

Platform = Literal["metal", "cuda"]

_THREADS = 256
_LEAST = 8
"""MLX hands arrays of fewer elements over as ``constant``, which no cast makes writable."""
_KIND_NAMES: dict[Platform, dict[Kind, str]] = {
    "metal": {"float16": "float16_t", "bfloat16": "bfloat16_t"},
    "cuda": {"float16": "__half", "bfloat16": "__nv_bfloat16"},
}
_KIND_HEADER = """
template <typename Pointer>
struct muser_widened {
    Pointer words;
    HERE float operator[](uint i) const { return float(words[i]); }
};
struct muser_word {
    device KIND *word;
    HERE void operator=(float x) const { *word = KIND(x); }
};
struct muser_narrowed {
    device KIND *words;
    HERE muser_word operator[](uint i) const { return muser_word{words + i}; }
};
"""
"""``float`` arrays that are of another kind in memory, for a body that reads and writes f32."""
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


def generated(
    kernel: Kernel, platform: Platform, in_place: tuple[bool, ...], kind: Kind = "float32", fence: bool = True
) -> dict[str, Any]:
    """What MLX's kernel constructor is handed: names, header, and source around the body.

    ``in_place`` says of each output, in order, whether it is a Buffer. Scalars
    travel as words of one uint32 array. ``float`` arrays are of ``kind``. Without a
    ``fence`` of its own, an array that the kernel makes has to serve as one.
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
        elif parameter.base == "float" and kind != "float32":
            array = f"{parameter.name}_words"
            if parameter.kind == "in":
                inputs.append(array)
                prelude.append(f"const muser_widened<decltype({array})> {parameter.name}{{{array}}};")
            else:
                next(places)
                outputs.append(array)
                prelude.append(f"const muser_narrowed {parameter.name}{{{array}}};")
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
    if fence:
        outputs.append("muser_fence")
        prelude.append(f"if ({kernel.thread_index} == 0) muser_fence[0] = 1;")
    helpers = kernel.helpers
    if kind != "float32":
        helpers = _KIND_HEADER.replace("KIND", _KIND_NAMES[platform][kind]) + helpers
    if platform == "cuda":
        helpers = _CUDA_HEADER + re.sub(r"^static inline", "__device__ static inline", helpers, flags=re.M)
    helpers = helpers.replace("HERE ", "__device__ " if platform == "cuda" else "")
    return {
        "name": f"{kernel.name}_{kind}_" + "".join("np"[place] for place in in_place) + "_f" * fence,
        "input_names": [*inputs, "muser_words", "muser_before"],
        "output_names": outputs,
        "header": helpers + "\n",
        "source": "\n".join(["", *prelude, kernel.body]),
    }


@cache
def function(name: str, platform: Platform, in_place: tuple[bool, ...], kind: Kind, fence: bool) -> Any:
    """The MLX custom kernel for a kernel of the package."""
    import mlx.core as mx

    construct = mx.fast.metal_kernel if platform == "metal" else mx.fast.cuda_kernel
    return construct(**generated(catalogue()[name], platform, in_place, kind, fence))


def _on_the_gpu(words: npt.NDArray[np.float16]) -> Any:
    """An array in memory that the GPU owns: what NumPy filled would move there page by page when read."""
    import mlx.core as mx

    if not words.view(np.uint16).any():
        return mx.zeros(words.shape, mx.float16)
    half = words.size // 2
    return mx.concatenate([mx.array(words[:half]), mx.array(words[half:])])


class FencedBuffer:
    """An f16 ``mlx.core.array`` that kernels write in place, and its fence."""

    def __init__(self, contents: npt.NDArray[np.float16]) -> None:
        import mlx.core as mx

        self.shape = contents.shape
        flat = np.ascontiguousarray(contents).reshape(-1)
        if flat.size < _LEAST:
            flat = np.concatenate([flat, np.zeros(_LEAST - flat.size, np.float16)])
        self.array = _on_the_gpu(flat)
        self.fence = mx.zeros((1,), dtype=mx.uint32)
        mx.eval(self.array, self.fence)

    @property
    def size(self) -> int:
        """Elements, without padding."""
        return int(np.prod(self.shape))

    def __deepcopy__(self, memo: dict[int, Any]) -> FencedBuffer:
        """Its own array, which a kernel may write in place."""
        import mlx.core as mx

        mx.eval(self.fence)
        return FencedBuffer(np.array(self.array)[: self.size].reshape(self.shape))


class Launch:
    """A kernel with its grid, scalars and outputs, to be queued over one array or another.

    Without a ``fence`` of its own the first array that it makes is one, and is kept until
    the next launch over the Buffers. ``before``: a launch of the same kernel, from whose
    scalars these are made on the GPU.
    MLX runs what it queues when one of its outputs is needed, or with the next
    launch over a Buffer of it.
    """

    def __init__(
        self,
        device: MlxDevice,
        name: str,
        grid: int,
        words: tuple[int | float, ...],
        outputs: tuple[tuple[int, ...], ...],
        in_place: tuple[bool, ...],
        kind: Kind,
        fence: bool = True,
        before: Launch | None = None,
    ) -> None:
        import mlx.core as mx

        scalars = [p.base for p in catalogue()[name].buffers if p.kind == "scalar"]
        self._bits = [word(base, given) for base, given in zip(scalars, words, strict=True)]
        self.words = before.stepped(self._bits) if before else mx.array(np.array(self._bits, np.uint32))
        """The scalars, as a uint32 array."""
        self._mx: Any = mx
        self._no_fence = device.no_fence
        self._fence = fence
        self._kernel = partial(
            device.kernel(name, in_place, kind, fence),
            output_shapes=[*outputs, *[(1,)] * fence],
            output_dtypes=[*[getattr(mx, kind)] * len(outputs), *[mx.uint32] * fence],
            grid=(grid, 1, 1),
            threadgroup=(min(grid, _THREADS), 1, 1),
        )

    def again(self, words: tuple[int, ...]) -> Launch:
        """The same with other scalars, none of them a ``float``."""
        launch = Launch.__new__(Launch)
        vars(launch).update(vars(self))
        launch._bits, launch.words = list(words), self.stepped(words)
        return launch

    def stepped(self, bits: Sequence[int]) -> Any:
        """Other scalars, made on the GPU from these, so that nothing waits."""
        steps = [(to - of) % (1 << 32) for to, of in zip(bits, self._bits, strict=True)]
        return self.words + _in_words(tuple(steps))

    def __call__(self, inputs: list[Any], buffers: Sequence[FencedBuffer]) -> list[Any]:
        """Queue it: its outputs.

        ``inputs``: arrays in the kernel's order, with those of ``buffers``: one, two or none.
        """
        before = buffers[0].fence if buffers else self._no_fence
        if len(buffers) > 1 and buffers[1].fence is not before:
            fences = [buffer.fence.reshape(-1)[:1] for buffer in buffers]
            before = self._mx.concatenate([fence.astype(self._mx.uint32) for fence in fences])
        made: list[Any] = self._kernel(inputs=[*inputs, self.words, before])
        # where it is what a user is given, an object of its own: they may assign to theirs
        fence = made.pop() if self._fence else made[0][...]
        for buffer in buffers:
            buffer.fence = fence
        return made


@lru_cache(maxsize=64)
def _in_words(words: tuple[int, ...]) -> Any:
    """A uint32 array. MLX on CUDA waits for the GPU where NumPy fills one, so few are made, and kept."""
    import mlx.core as mx

    return mx.array(np.array(words, np.uint32))


class MlxDevice:
    """Kernels on a GPU that MLX drives."""

    def __init__(self, platform: Platform) -> None:
        import mlx.core as mx

        self.name: str = platform
        self._platform: Platform = platform
        self._mx: Any = mx
        self.no_fence = mx.zeros((1,), mx.uint32)
        mx.eval(self.no_fence)
        self.prepared = lru_cache(maxsize=256)(partial(Launch, self))
        """A Launch, kept for the next time: a model's planes in one state share it."""

    def __deepcopy__(self, memo: dict[int, Any]) -> MlxDevice:
        return self

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

    def launch(self, name: str, grid: int, arguments: Sequence[Any], kind: Kind = "float32") -> list[Any]:
        """Queue a kernel over ``grid`` threads and return its outputs; does not wait."""
        inputs: list[Any] = []
        words: list[int | float] = []
        touched: list[FencedBuffer] = []
        in_place: list[bool] = []
        fresh: list[tuple[int, ...]] = []
        for parameter, given in zip(catalogue()[name].buffers, arguments, strict=True):
            if parameter.kind == "scalar":
                words.append(given)
                continue
            if parameter.kind == "out":
                in_place.append(isinstance(given, FencedBuffer))
            if isinstance(given, Fresh):
                fresh.append(given.shape)
            elif isinstance(given, FencedBuffer):
                touched.append(given)
                inputs.append(given.array)
            else:
                inputs.append(given)
        queued = self.prepared(name, grid, tuple(words), tuple(fresh), tuple(in_place), kind)
        outputs = queued(inputs, touched)
        self._mx.async_eval(*outputs, *(buffer.fence for buffer in touched[:1]))
        return outputs

    def kernel(
        self, name: str, in_place: tuple[bool, ...], kind: Kind, fence: bool
    ) -> Callable[..., list[Any]]:
        """What hands a kernel to MLX: its outputs, the new ``fence`` last where it makes one."""
        handing: Callable[..., list[Any]] = function(name, self._platform, in_place, kind, fence)
        return handing
