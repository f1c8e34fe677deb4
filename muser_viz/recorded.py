"""What machines' kernels gave when they were run, as recorded: the files in ``kernels/receipts``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from muser_viz import resources


@dataclass(frozen=True)
class Receipt:
    """One recorded run: its ISO date, backend, device, and the figures of each part by name."""

    date: str
    backend: str
    device: str
    machine: str
    versions: dict[str, str]
    command: str
    results: dict[str, str]
    bench: dict[str, float]


def receipts() -> list[Receipt]:
    """Every recorded run, the oldest first. Recorded, not measured now."""
    found = []
    for path in sorted(resources.folder("kernels").joinpath("receipts").glob("*.json")):
        held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found.append(Receipt(**{name: held[name] for name in Receipt.__dataclass_fields__}))
    return found
