"""A kernel's file, to be read: its text as it is on disk, and its buffer table (§15.4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from muser_viz.devices.source import Kernel, Parameter, catalogue, parse
from muser_viz.errors import InputError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_DECLARED = {"in": "device const {} *", "out": "device {} *", "scalar": "constant {} &"}


@dataclass(frozen=True)
class KernelSource:
    """One kernel: ``text`` is its whole file, ``buffers`` its table, ``body`` the line of each statement.

    ``body`` maps line numbers of ``text`` (from 1) to those lines of the
    kernel's body, without comments.
    """

    name: str
    text: str
    buffers: tuple[Parameter, ...]
    body: Mapping[int, str]

    def uses(self, name: str) -> dict[int, str]:
        """The lines of the body that use a buffer, by number; InputError for a name that is no buffer."""
        names = [buffer.name for buffer in self.buffers]
        if name not in names:
            raise InputError(f"{self.name} has no buffer {name!r}; it has {', '.join(names)}")
        found = re.compile(rf"\b{re.escape(name)}\b")
        return {number: line.strip() for number, line in self.body.items() if found.search(line)}

    def table(self, values: Mapping[str, int] | None = None) -> str:
        """The buffer table as text: index, type, name, the lines that use it, and ``values`` by name."""
        given = values or {}
        rows = [("buffer", "type", "name", "used in lines", "value")]
        for buffer in self.buffers:
            rows.append(
                (
                    str(buffer.index),
                    _DECLARED[buffer.kind].format(buffer.base),
                    buffer.name,
                    ", ".join(map(str, self.uses(buffer.name))),
                    f"{given[buffer.name]:,}" if buffer.name in given else "",
                )
            )
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = []
        for index, declared, name, used, value in rows:
            line = f"{index:>{widths[0]}}  {declared:{widths[1]}}  {name:{widths[2]}}  {used:{widths[3]}}"
            lines.append(f"{line}  {value:>9}" if given else line)
        return "\n".join(line.rstrip() for line in lines)

    def __str__(self) -> str:
        """The file with its lines numbered."""
        return "\n".join(
            f"{number:3}  {line}".rstrip() for number, line in enumerate(self.text.splitlines(), 1)
        )


def taken_apart(text: str, kernel: Kernel, path: Path) -> KernelSource:
    """A kernel of a file's text, with the lines of its body found."""
    blank = _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text)
    body = parse(blank, path)[kernel.name].body
    declared = re.search(rf"\bvoid\s+{kernel.name}\s*\(", blank)
    assert declared
    first = blank[: blank.index(body, declared.end())].count("\n") + 1
    lines = {first + i: line.rstrip() for i, line in enumerate(body.splitlines()) if line.strip()}
    return KernelSource(kernel.name, text, kernel.buffers, lines)


def kernel_source(name: str) -> KernelSource:
    """A kernel that came with the package, as it is on disk (§15.4); InputError for a name that is none."""
    known = catalogue()
    if name not in known:
        raise InputError(f"kernel {name!r} was asked for; there are {', '.join(known)}")
    path = known[name].path
    return taken_apart(path.read_text(encoding="utf-8"), known[name], path)
