"""What the model at its own widths gave on a GPU, as recorded: ``kernels/receipts/model``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muser_viz.recorded import Recorded, read


@dataclass(frozen=True)
class ModelReceipt(Recorded):
    """One recorded run of the model: its shape, and the figures of each part."""

    model: str
    results: dict[str, Any]


def model_receipts() -> list[ModelReceipt]:
    """Every recorded run of the model, the oldest first. Recorded, not measured now."""
    return read(ModelReceipt, "model")
