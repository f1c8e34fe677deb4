"""``metal`` and ``cuda``: the kernels' bodies through MLX, in place, behind a fence.

MLX has no custom kernel that writes an input. A Buffer is handed in as an
input and written through a cast, which MLX does not see. It is its first elements that
are handed in: MLX counts what a launch reads, to send work off in portions, and one row
of a plane would count as all of them. So each Buffer carries
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
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from muser_viz.devices.protocol import Fresh, Kind, word
from muser_viz.devices.source import Kernel, catalogue
from muser_viz.errors import KernelError
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
    kernel: Kernel,
    platform: Platform,
    in_place: tuple[bool, ...],
    kind: Kind = "float32",
    fence: bool = True,
    fixed: tuple[int, ...] = (),
) -> dict[str, Any]:
    """What MLX's kernel constructor is handed: names, header, and source around the body.

    ``in_place`` says of each output, in order, whether it is a Buffer. Scalars
    travel as words of one uint32 array; the first of them may be ``fixed`` in the source.
    ``float`` arrays are of ``kind``. Without a ``fence`` of its own, an array that the
    kernel makes has to serve as one.
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
            value = f"{fixed[words]}u" if words < len(fixed) else value
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
        "name": "_".join([kernel.name, kind, "".join("np"[place] for place in in_place), *map(str, fixed)])
        + "_f" * fence,
        "input_names": [*inputs, "muser_words", "muser_before"],
        "output_names": outputs,
        "header": helpers + "\n",
        "source": "\n".join(["", *prelude, kernel.body]),
    }


@cache
def function(
    name: str,
    platform: Platform,
    in_place: tuple[bool, ...],
    kind: Kind,
    fence: bool,
    fixed: tuple[int, ...],
) -> Any:
    """The MLX custom kernel for a kernel of the package."""
    import mlx.core as mx

    construct = mx.fast.metal_kernel if platform == "metal" else mx.fast.cuda_kernel
    return construct(**generated(catalogue()[name], platform, in_place, kind, fence, fixed))


def _on_the_gpu(words: npt.NDArray[np.float16]) -> Any:
    """An array in memory that the GPU owns: what NumPy filled would move there page by page when read."""
    import mlx.core as mx

    if not words.view(np.uint16).any():
        return mx.zeros(words.shape, mx.float16)
    half = words.size // 2
    return mx.concatenate([mx.array(words[:half]), mx.array(words[half:])])


class FencedBuffer:
    """An f16 ``mlx.core.array`` that kernels write in place, and its fence."""

    __slots__ = ("array", "fence", "given", "shape")

    def __init__(self, contents: npt.NDArray[np.float16]) -> None:
        self.shape = contents.shape
        self.hold(contents)

    def hold(self, contents: npt.NDArray[np.float16]) -> None:
        """Take contents of its shape into an array of its own, which no launch has touched."""
        import mlx.core as mx

        flat = np.ascontiguousarray(contents).reshape(-1)
        if flat.size < _LEAST:
            flat = np.concatenate([flat, np.zeros(_LEAST - flat.size, np.float16)])
        array = _on_the_gpu(flat)
        given, fence = array[:_LEAST], mx.zeros((1,), dtype=mx.uint32)
        mx.eval(array, given, fence)
        self.array = array
        self.given = given
        """Its first elements: what a launch is given, for MLX takes all of an input for read."""
        self.fence = fence

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
    """A kernel with its grid and outputs, to be queued over one array or another.

    One that ``takes`` K and V of one shape and type is traced by MLX at first and repeated
    after: the kernel's source is put together once, and shapes and types are looked at once
    for all that are given. It makes no fence: the first array that it makes is one, and is
    kept until the next launch over the Buffers. MLX runs what it queues when
    one of its outputs is needed, or with the next launch over a Buffer of it.
    """

    def __init__(
        self,
        device: MlxDevice,
        name: str,
        grid: int,
        outputs: tuple[tuple[int, ...], ...],
        in_place: tuple[bool, ...],
        kind: Kind,
        takes: tuple[int, ...] | None = None,
        fixed: tuple[int, ...] = (),
    ) -> None:
        """``takes``: the shape of the first two inputs, which then have to be of ``kind`` too.

        ``fixed``: the first scalars, where they are to be constants of the kernel.
        """
        import mlx.core as mx

        self._mx: Any = mx
        self._no_fence = device.no_fence
        dtype = getattr(mx, kind)
        self._takes = f"{kind} {takes}"
        fence = takes is None
        handing = partial(
            device.kernel(name, in_place, kind, fence, fixed),
            output_shapes=[*outputs, *[(1,)] * fence],
            output_dtypes=[*[dtype] * len(outputs), *[mx.uint32] * fence],
            grid=(grid, 1, 1),
            threadgroup=(min(grid, _THREADS), 1, 1),
        )

        def queue(*inputs: Any) -> list[Any]:
            for given in inputs[:2] if takes else ():
                if not isinstance(given, mx.array) or given.shape != takes or given.dtype != dtype:
                    return []
            made: list[Any] = handing(inputs=list(inputs))
            # an object of its own: a user may assign to what they are given
            return made if fence else [*made, made[0][...]]

        self.queue: Callable[..., list[Any]] = device.traced(queue) if takes else queue
        """From the inputs, the scalars as a uint32 array and the fence: the outputs and the fence after it.

        Empty, and nothing queued, where K or V is of another shape or type than it takes: of
        an error in a trace MLX would keep an entry each time.
        """

    def __call__(self, words: Any, inputs: list[Any], buffers: Sequence[FencedBuffer]) -> list[Any]:
        """Queue it: its outputs.

        ``words``: the scalars. ``inputs``: arrays in the kernel's order, with those of
        ``buffers``: one, two or none. KernelError where K or V is not what it takes.
        """
        before = buffers[0].fence if buffers else self._no_fence
        if len(buffers) > 1 and buffers[1].fence is not before:
            fences = [buffer.fence.reshape(-1)[:1] for buffer in buffers]
            before = self._mx.concatenate([fence.astype(self._mx.uint32) for fence in fences])
        made = self.queue(*inputs, words, before)
        if not made:
            given = ", ".join(f"{each.dtype} {each.shape}" for each in inputs[:2])
            raise KernelError(f"K and V are {given}; a launch was prepared for {self._takes}")
        fence = made.pop()
        for buffer in buffers:
            buffer.fence = fence
        return made


def in_words(scalars: npt.ArrayLike) -> Any:
    """Scalars as a uint32 array. MLX on CUDA waits for the GPU where NumPy fills one, so it is kept."""
    words = np.asarray(scalars, np.uint32)
    return _kept(words.tobytes(), words.shape)


@lru_cache(maxsize=256)
def _kept(words: bytes, shape: tuple[int, ...]) -> Any:
    import mlx.core as mx

    return mx.array(np.frombuffer(words, np.uint32).reshape(shape))


def stepped(words: Any, scalars: Sequence[int], to: Sequence[Sequence[int]]) -> list[Any]:
    """Arrays of other scalars, each made on the GPU from those of ``scalars``: nothing waits."""
    import mlx.core as mx

    told = np.fromiter(chain.from_iterable(to), np.uint32).reshape(len(to), -1)  # quicker than of tuples
    steps = told - np.array(scalars, np.uint32)
    return list(mx.split(words + in_words(steps), len(to)))


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
        """A Launch, kept for the next time: a model's planes of one shape share it."""
        self.repeated = cache(partial(Launch, self))
        """One that is traced, kept for good: MLX knows a trace by the address of what it traced."""
        self.traced: Callable[[Callable[..., list[Any]]], Callable[..., list[Any]]] = mx.compile
        """What has MLX trace a launch."""

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
            buffer.hold(contents)

    def launch(self, name: str, grid: int, arguments: Sequence[Any], kind: Kind = "float32") -> list[Any]:
        """Queue a kernel over ``grid`` threads and return its outputs; does not wait."""
        inputs: list[Any] = []
        words: list[int] = []
        touched: list[FencedBuffer] = []
        in_place: list[bool] = []
        fresh: list[tuple[int, ...]] = []
        for parameter, given in zip(catalogue()[name].buffers, arguments, strict=True):
            if parameter.kind == "scalar":
                words.append(word(parameter.base, given))
                continue
            if parameter.kind == "out":
                in_place.append(isinstance(given, FencedBuffer))
            if isinstance(given, Fresh):
                fresh.append(given.shape)
            elif isinstance(given, FencedBuffer):
                touched.append(given)
                inputs.append(given.given)
            else:
                inputs.append(given)
        launch = self.prepared(name, grid, tuple(fresh), tuple(in_place), kind)
        outputs = launch(in_words([words]), inputs, touched)
        self._mx.async_eval(*outputs, *(buffer.fence for buffer in touched[:1]))
        return outputs

    def kernel(
        self, name: str, in_place: tuple[bool, ...], kind: Kind, fence: bool, fixed: tuple[int, ...]
    ) -> Callable[..., list[Any]]:
        """What hands a kernel to MLX: its outputs, the new ``fence`` last where it makes one."""
        handing: Callable[..., list[Any]] = function(name, self._platform, in_place, kind, fence, fixed)
        return handing
