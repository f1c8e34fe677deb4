from __future__ import annotations

import json
import re

import muser_viz as mv
from muser_viz import resources

FOLDER = resources.folder("kernels") / "receipts"


def test_every_receipt_is_read_and_dated() -> None:
    found = mv.receipts()
    assert len(found) == len(list(FOLDER.glob("*.json"))) >= 1
    for receipt in found:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", receipt.date)
        assert receipt.device
        assert receipt.command


def test_the_h200s_receipt() -> None:
    receipt = next(r for r in mv.receipts() if r.backend == "cuda")
    assert receipt.results["scan digest"] == mv.scan_digest()
    assert " passed" in receipt.results["cases"]
    assert "failed" not in receipt.results["cases"]
    assert "0 errors" in receipt.results["compute-sanitizer memcheck"]
    assert (
        json.loads((FOLDER / f"{receipt.date}-nvidia-h200.json").read_text())["versions"] == receipt.versions
    )
