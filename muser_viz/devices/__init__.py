"""Where the kernels run: ``metal``, ``cuda``, ``host`` or ``numpy``, found when first needed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata

from muser_viz.devices.protocol import Device
from muser_viz.errors import BackendUnavailable, InputError

NAMES = ("metal", "cuda", "host", "numpy")
"""In the order of preference."""
VARIABLE = "MUSER_VIZ_BACKEND"

_chosen: list[str] = []
"""The name given to ``use_backend``, if one was."""


@dataclass(frozen=True)
class BackendStatus:
    """Whether one backend runs here: ``detail`` is the compiler or GPU, or why it does not."""

    name: str
    available: bool
    detail: str


class Backends(tuple[BackendStatus, ...]):
    """What ``backends()`` returns: a status for each name, printed as a table."""

    def __getitem__(self, key: str | int) -> BackendStatus:  # type: ignore[override]
        """By position, or by name."""
        if isinstance(key, str):
            return self[NAMES.index(_known(key))]
        return super().__getitem__(key)

    def __repr__(self) -> str:
        return "\n".join(
            f"{status.name:6} {'runs' if status.available else 'no'}  {status.detail.splitlines()[0]}"
            for status in self
        )


def _mlx(platform: str) -> Device:
    try:
        import mlx.core as mx
    except ImportError as error:
        if platform == "metal":
            raise BackendUnavailable(f"mlx does not import ({error}): `pip install mlx` on a Mac") from error
        raise BackendUnavailable(
            f"mlx does not import ({error}): on an NVIDIA machine `make lab MLX=cuda13`"
        ) from error
    if platform == "metal":
        if not mx.metal.is_available():
            raise BackendUnavailable("no Metal device: it needs a Mac with Apple silicon")
    elif not mx.cuda.is_available():
        raise BackendUnavailable(
            "this mlx has no CUDA, or finds no NVIDIA GPU: on an NVIDIA machine `make lab MLX=cuda13`"
        )
    from muser_viz.devices.mlx_gpu import MlxDevice

    return MlxDevice("metal" if platform == "metal" else "cuda")


def _host() -> Device:
    from muser_viz.devices.host import HostDevice

    return HostDevice()


def _numpy() -> Device:
    from muser_viz.devices.oracle import NumpyDevice

    return NumpyDevice()


_BUILDERS: dict[str, Callable[[], Device]] = {
    "metal": lambda: _mlx("metal"),
    "cuda": lambda: _mlx("cuda"),
    "host": _host,
    "numpy": _numpy,
}


@cache
def _open(name: str) -> Device | BackendUnavailable:
    try:
        return _BUILDERS[name]()
    except BackendUnavailable as error:
        return error


def _known(name: str) -> str:
    if name not in NAMES:
        raise InputError(f"backend {name!r} was asked for; there are {', '.join(NAMES)}")
    return name


def backends() -> Backends:
    """What can run the kernels here, and why the others cannot."""
    found = []
    for name in NAMES:
        device = _open(name)
        if isinstance(device, BackendUnavailable):
            found.append(BackendStatus(name, False, str(device)))
        else:
            found.append(BackendStatus(name, True, device.describe()))
    return Backends(found)


def installed_twice() -> str | None:
    """What to do where MLX for the CPU and for CUDA are both installed: they own the same files."""
    names = {dist.metadata["Name"].lower() for dist in metadata.distributions() if dist.metadata["Name"]}
    cuda = sorted(name for name in names if name.startswith("mlx-cuda"))
    if "mlx-cpu" in names and cuda:
        return (
            f"mlx-cpu and {cuda[0]} are both installed and own the same library: "
            f"`pip uninstall -y mlx-cpu {cuda[0]}`, then install the one you want"
        )
    return None


def use_backend(name: str | None) -> None:
    """Make ``name`` the backend of planes made from here on; None goes back to the default.

    InputError for an unknown name, BackendUnavailable where it cannot run here.
    """
    if name is not None:
        device(name)
    _chosen[:] = [] if name is None else [name]


def device(name: str | None = None) -> Device:
    """The device of a backend.

    Unnamed: the one of ``use_backend``, else of the environment variable
    ``MUSER_VIZ_BACKEND``, else the first of metal, cuda, host, numpy that runs.
    InputError for an unknown name, BackendUnavailable where it cannot run here.
    """
    if name is None and _chosen:
        name = _chosen[0]
    if name is None and os.environ.get(VARIABLE):
        asked = os.environ[VARIABLE]
        if asked not in NAMES:
            raise InputError(f"{VARIABLE} is {asked!r}; set it to one of {', '.join(NAMES)}, or unset it")
        name = asked
    if name is not None:
        opened = _open(_known(name))
        if isinstance(opened, BackendUnavailable):
            raise BackendUnavailable(f"backend {name!r} cannot run here: {opened}") from opened
        return opened
    return _first()


@cache
def _first() -> Device:
    for name in NAMES:
        opened = _open(name)
        if isinstance(opened, BackendUnavailable):
            continue
        if name == "numpy":
            warnings.warn(
                "no kernel can run here, NumPy stands in for them: install g++ 12 or later, "
                "or `pip install 'muser-viz[compiler]'`, and start again",
                RuntimeWarning,
                stacklevel=2,
            )
        return opened
    raise AssertionError("numpy always runs")
