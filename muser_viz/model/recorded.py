"""What the model at its own widths gave on a GPU, as recorded: ``kernels/receipts/model``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from muser_viz import resources


@dataclass(frozen=True)
class ModelReceipt:
    """One recorded run of the model: ISO date, backend, device, shape of the model, figures of each part."""

    date: str
    backend: str
    device: str
    machine: str
    versions: dict[str, str]
    command: str
    model: str
    results: dict[str, Any]


def model_receipts() -> list[ModelReceipt]:
    """Every recorded run of the model, the oldest first. Recorded, not measured now."""
    folder = resources.folder("kernels").joinpath("receipts", "model")
    found = []
    for path in sorted(folder.glob("*.json")):
        held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found.append(ModelReceipt(**{name: held[name] for name in ModelReceipt.__dataclass_fields__}))
    return found
