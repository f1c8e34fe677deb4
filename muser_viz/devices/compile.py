"""The host compiler: which one, what it makes of the kernels, and where that is kept."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import platformdirs

from muser_viz.errors import BackendUnavailable, KernelError

SHIM = Path(__file__).resolve().parent / "shim"
FLAGS = (
    "-std=c++17",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-w",
    f"-I{SHIM}",
)
TUNING = (("-march=native",), ("-mcpu=native",), ())
"""Flags for this very processor; which of them a compiler takes depends on compiler and processor."""


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler that has ``_Float16``: the command with its flags, and what it says of itself.

    ``identity`` is a digest of its predefined macros under the flags in use,
    so of its version, of the flags and of what "native" means here.
    """

    command: tuple[str, ...]
    flags: tuple[str, ...]
    link: tuple[str, ...]
    version: str
    identity: str

    def __str__(self) -> str:
        name = "zig" if "ziglang" in self.command else Path(self.command[0]).name
        return f"{name} {self.version}"


def _words(variable: str) -> tuple[str, ...]:
    """An environment variable split as a shell would."""
    try:
        return tuple(shlex.split(os.environ.get(variable, "")))
    except ValueError as error:
        raise BackendUnavailable(
            f"{variable} is {os.environ[variable]!r} ({error}): mend it or unset it"
        ) from error


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


def _candidates() -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    asked = _words("CXX")
    if asked:
        yield asked, ()
        return
    for name in ("g++", "c++", "clang++"):
        if shutil.which(name):
            yield (name,), ()
    if find_spec("ziglang"):
        yield (sys.executable, "-m", "ziglang", "cc", "-x", "c++"), ("-nostdlib++",)


def _probe(command: tuple[str, ...], tuning: tuple[str, ...], link: tuple[str, ...]) -> Compiler | str:
    """The compiler, or why it will not do."""
    flags = (*FLAGS, *tuning, *_words("MUSER_VIZ_CXXFLAGS"))
    try:
        ran = _run([*command, *flags, "-dM", "-E", "-x", "c++", os.devnull])
    except OSError as error:
        return f"{shlex.join(command)}: {error.strerror or error}"
    if ran.returncode != 0:
        return f"{shlex.join(command)}: {ran.stderr.strip() or f'exit status {ran.returncode}'}"
    macros = dict(line.split(" ", 2)[1:] for line in ran.stdout.splitlines() if line.count(" ") >= 2)
    if "__FLT16_MANT_DIG__" not in macros:
        return f"{shlex.join(command)}: has no _Float16 on this machine"
    version = macros.get("__VERSION__", "").strip('"')
    identity = hashlib.sha256("\0".join((ran.stdout, *flags, *command)).encode())
    return Compiler(command, flags, link, version, identity.hexdigest())


@cache
def find() -> Compiler:
    """The first C++ compiler that can compile the kernels; BackendUnavailable otherwise."""
    refusals: list[str] = []
    for command, link in _candidates():
        for tuning in TUNING:
            found = _probe(command, tuning, link)
            if isinstance(found, Compiler):
                return found
        refusals.append(str(found))
    tried = "; ".join(refusals) or "none of g++, c++, clang++ is on the PATH, nor is ziglang installed"
    raise BackendUnavailable(
        f"no C++ compiler here can compile the kernels ({tried}): "
        "install g++ 12 or later, or `pip install 'muser-viz[compiler]'`"
    )


@cache
def _private_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="muser_viz-")


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``MUSER_VIZ_CACHE``, or the user's cache folder.

    Where that cannot be written: a folder of this process alone.
    """
    asked = os.environ.get("MUSER_VIZ_CACHE")
    folder = (
        Path(asked).expanduser().absolute()
        if asked
        else platformdirs.user_cache_path("muser_viz", appauthor=False)
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(_private_folder().name)


def shared_object(name: str, source: str, depends: tuple[Path, ...]) -> Path:
    """Compile C++ text to a shared object, once for its content, compiler and flags.

    ``depends`` are the files that it includes. The object is written aside
    and renamed, so processes that start at once cannot see half of one; its size
    is in its name, so one that was cut short since is made anew.
    KernelError with the compiler's words where it does not compile.
    """
    compiler = find()
    digest = hashlib.sha256(f"{compiler.identity}\0{source}".encode())
    for path in (*depends, *sorted(SHIM.iterdir())):
        digest.update(path.read_bytes())
    folder = cache_folder()
    stem = f"{name}-{digest.hexdigest()[:24]}"
    for kept in folder.glob(f"{stem}-*.so"):
        if kept.stem == f"{stem}-{kept.stat().st_size}":
            return kept
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}-") as aside:
        text, built = Path(aside, f"{name}.cpp"), Path(aside, "built.so")
        text.write_text(source, encoding="utf-8")
        command = [*compiler.command, *compiler.flags, "-shared", str(text), "-o", str(built)]
        ran = _run([*command, *compiler.link])
        if ran.returncode != 0:
            raise KernelError(f"{name}: {compiler} refused it:\n{ran.stderr.strip()}")
        if not built.exists():
            raise KernelError(
                f"{name}: {compiler} said nothing and made nothing: set CXX to another compiler"
            )
        target = folder / f"{stem}-{built.stat().st_size}.so"
        os.replace(built, target)
    return target
