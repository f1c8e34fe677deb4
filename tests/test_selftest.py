from __future__ import annotations

from collections.abc import Generator

import pytest

from muser_viz import devices, selftest
from muser_viz.devices.oracle import NumpyDevice


def ended(testing: Generator[None, None, str]) -> tuple[int, str]:
    steps = 0
    while True:
        try:
            next(testing)
        except StopIteration as end:
            return steps, str(end.value)
        steps += 1


@pytest.mark.parametrize("head_major", [False, True])
def test_every_bit_equal(head_major: bool, backend: str) -> None:
    assert ended(selftest.run(backend, head_major, 120)) == (240, "")


def test_a_read_before_its_store_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One store of the chain lands after the read that should have seen it."""
    right = NumpyDevice.launch
    held: list[tuple[object, ...]] = []

    def late(self: NumpyDevice, name: str, *rest: object) -> list[object]:
        count.append(name)
        if name.startswith("muser_kv_store") and len(count) == 101:
            held.append((name, *rest))
            return []
        fresh = right(self, name, *rest)  # type: ignore[arg-type]
        if held and name == "muser_mix_f32":
            right(self, *held.pop())  # type: ignore[arg-type]
        return fresh

    count: list[str] = []
    monkeypatch.setattr(NumpyDevice, "launch", late)
    other = next(s.name for s in devices.backends() if s.available and s.name != "numpy")
    steps, verdict = ended(selftest.run(other, False, 120))
    assert steps == 240
    assert "bytes differ" in verdict
