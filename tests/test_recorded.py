from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

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


def test_receipts_of_one_day_come_in_the_order_they_were_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of a device has ``-2`` at the end of its name."""
    folder = tmp_path / "receipts"
    folder.mkdir()
    held = json.loads(next(FOLDER.glob("*.json")).read_text())
    for name, command in (
        ("2026-12-01-gpu-2", "second"),
        ("2026-12-02-gpu", "third"),
        ("2026-12-01-gpu", "first"),
    ):
        (folder / f"{name}.json").write_text(json.dumps({**held, "command": command}))
    monkeypatch.setattr(resources, "folder", lambda _: tmp_path)
    assert [receipt.command for receipt in mv.receipts()] == ["first", "second", "third"]
