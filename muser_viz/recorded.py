"""What machines' kernels gave when they were run, as recorded: the files in ``kernels/receipts``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from muser_viz import resources


@dataclass(frozen=True)
class Recorded:
    """What every receipt says: its ISO date, backend, device, machine, versions and command."""

    date: str
    backend: str
    device: str
    machine: str
    versions: dict[str, str]
    command: str


@dataclass(frozen=True)
class Receipt(Recorded):
    """One recorded run of the kernels, with the figures of each part by name."""

    results: dict[str, str]
    bench: dict[str, float]


Kind = TypeVar("Kind", bound=Recorded)


def read(kind: type[Kind], *folder: str) -> list[Kind]:
    """The receipts of one kind in a folder of ``kernels/receipts``, the oldest first."""
    found = []
    place = resources.folder("kernels").joinpath("receipts", *folder)
    for path in sorted(place.glob("*.json"), key=lambda path: path.stem):
        held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found.append(kind(**{name: held[name] for name in kind.__dataclass_fields__}))
    return found


def receipts() -> list[Receipt]:
    """Every recorded run, the oldest first. Recorded, not measured now."""
    return read(Receipt)
