from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from muser_viz import devices, doctor, selftest


def test_the_doctor_passes_what_runs_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(steps=60) == 0
    said = capsys.readouterr().out
    for status in devices.backends():
        assert status.name in said
        if status.available and status.name != "numpy":
            assert f"{status.name:6} head-major  every bit equal" in said


def test_a_wrong_bit_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from muser_viz.devices.host import HostDevice

    right = HostDevice.launch

    def wrong(self: HostDevice, name: str, *rest: Any) -> list[np.ndarray]:
        fresh = right(self, name, *rest)
        if name == "muser_mix_f32":
            fresh[0].view(np.uint32)[0] ^= 1
        return fresh

    monkeypatch.setattr(HostDevice, "launch", wrong)
    assert doctor.main(steps=40) == 1
    assert "bytes differ from NumPy's" in capsys.readouterr().out


def test_an_error_in_a_self_test_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("lost the device")

    monkeypatch.setattr(selftest, "run", broken)
    assert doctor.main(steps=1) == 1
    assert "RuntimeError: lost the device" in capsys.readouterr().out
