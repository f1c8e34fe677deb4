"""Kernel files, read and taken apart: signature, helpers, body (§15.4).

``kernels/*.metal`` is the only place where a kernel is written. Here its text
is split so that another compiler can be handed the very same body.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from muser_viz import resources
from muser_viz.errors import KernelError

Kind = Literal["in", "out", "scalar"]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_KERNEL = re.compile(r"(?:\bkernel|\[\[kernel\]\])\s+void\s+(\w+)\s*\(")
_PARAMETER = re.compile(
    r"^(?P<type>.*?)(?P<name>\w+)\s*\[\[\s*(?P<attribute>\w+)\s*(?:\(\s*(?P<index>\d+)\s*\))?\s*\]\]$", re.S
)


@dataclass(frozen=True)
class Parameter:
    """One buffer of a kernel: ``base`` is ``float``, ``half`` or ``uint``."""

    name: str
    base: str
    kind: Kind
    index: int


@dataclass(frozen=True)
class Kernel:
    """A kernel of a file: its buffers in order, the name of its thread index, its body."""

    name: str
    path: Path
    buffers: tuple[Parameter, ...]
    thread_index: str
    thread_type: str
    helpers: str
    body: str


def _closing(text: str, start: int, pair: str, path: Path) -> int:
    depth = 1
    for place in range(start, len(text)):
        if text[place] == pair[0]:
            depth += 1
        elif text[place] == pair[1]:
            depth -= 1
            if depth == 0:
                return place
    raise KernelError(f"{path.name}: a '{pair[0]}' is never closed by '{pair[1]}': mend the file")


def parse(text: str, path: Path) -> dict[str, Kernel]:
    """The kernels of a Metal file by name; KernelError where it cannot be taken apart."""
    text = _COMMENT.sub("", text)
    found = list(_KERNEL.finditer(text))
    if not found:
        raise KernelError(f"{path.name} holds no `kernel void name(...)`: a kernel file has at least one")
    preamble = text[: found[0].start()]
    helpers = "\n".join(
        line for line in preamble.splitlines() if not re.match(r"\s*(#include|using\s+namespace)", line)
    ).strip()
    kernels = {}
    for match in found:
        close = _closing(text, match.end(), "()", path)
        opening = text.find("{", close)
        if opening < 0:
            raise KernelError(f"{path.name}: {match[1]} has no body: mend the file")
        body = text[opening + 1 : _closing(text, opening + 1, "{}", path)]
        buffers: list[Parameter] = []
        thread = None
        for part in re.split(r",(?![^\[]*\]\])", text[match.end() : close]):
            parameter = _PARAMETER.match(part.strip())
            if parameter is None:
                raise KernelError(
                    f"{path.name}: {match[1]} has the parameter `{part.strip()}`; "
                    "each needs [[buffer(n)]] or [[thread_position_in_grid]]"
                )
            declared = parameter["type"]
            base = re.sub(r"\b(?:device|const|constant)\b|[*&\s]", "", declared)
            if parameter["attribute"] == "thread_position_in_grid":
                thread = (parameter["name"], base)
                continue
            kind: Kind = "scalar" if "&" in declared else "in" if re.search(r"\bconst\b", declared) else "out"
            buffers.append(Parameter(parameter["name"], base, kind, int(parameter["index"])))
        if thread is None:
            raise KernelError(f"{path.name}: {match[1]} takes no [[thread_position_in_grid]]")
        kernels[match[1]] = Kernel(match[1], path, tuple(buffers), *thread, helpers, body)
    return kernels


def load(path: Path) -> dict[str, Kernel]:
    """Read and take apart one file."""
    return parse(path.read_text(encoding="utf-8"), path)


@cache
def catalogue() -> Mapping[str, Kernel]:
    """Every kernel that came with the package, by name."""
    return {
        name: kernel
        for path in sorted(resources.folder("kernels").glob("*.metal"))
        for name, kernel in load(path).items()
    }
