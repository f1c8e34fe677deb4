"""Receipts of the model, and the script that writes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from muser_viz import resources
from muser_viz.model.recorded import model_receipts

ROOT = Path(__file__).resolve().parent.parent


def test_the_receipts_that_came_with_the_package_are_read() -> None:
    for receipt in model_receipts():
        assert receipt.results
        assert receipt.command.startswith("python tests/model_receipt.py FOLDER")


def test_a_receipt_of_the_reduced_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "receipts" / "model"
    parts = "memory,control,ops,layers,roll,compare"
    command = [sys.executable, "tests/model_receipt.py", str(folder), "--small", "--parts", parts]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    monkeypatch.setattr(resources, "folder", lambda _: tmp_path)
    (receipt,) = model_receipts()
    assert receipt.results["control, prefill twice, fused attention"] == "layers with unequal K rows: none"
    assert receipt.results["6 rings rolled by 7 rows, fused attention"][0] != "0"
    assert receipt.results["control after the roll, fused attention"].startswith("0 of 512 differ")
    for how in ("fused attention", "plain attention"):
        said = receipt.results[f"{how}, third token after 64 (same rotation), ours against rounded"]
        assert said.startswith("0 of 512")
        said = receipt.results[f"{how}, prefill of 80, ours against mlx-lm's fed f16-rounded rows"]
        assert said.startswith("0 of 512")
    assert receipt.results["where ours and mlx-lm's part, same rotation, fused attention"] == "nowhere"
    assert receipt.results["operations that gave other bits when repeated"].startswith("0 of ")
    held = json.loads(next(folder.glob("*.json")).read_text())
    assert str(tmp_path) not in json.dumps(held)
    assert next(folder.glob("*.log")).read_text().count("\n-- ") == 6


def test_a_part_that_fails_is_told_and_the_others_run(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "tests/model_receipt.py",
        str(tmp_path),
        "--small",
        "--parts",
        "nothing,memory",
    ]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    results = json.loads(next(tmp_path.glob("*.json")).read_text())["results"]
    assert results["nothing failed"] == "KeyError: 'nothing'"
    assert any(name.startswith("memory at") for name in results)
