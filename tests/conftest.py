"""What every test module shares: the cases, the backends to run them on, wrong rings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from captured import CapturedDevice
from hypothesis import settings

import muser_viz as mv
from muser_viz import devices

pytest.register_assert_rewrite("page_checks")

CASES = Path(__file__).parent / "cases"

settings.register_profile("here", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("here")


def cases(name: str) -> Any:
    """One file of inputs with right answers."""
    return json.loads((CASES / name).read_text(encoding="utf-8"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--require-metal", action="store_true", help="fail, do not skip, where Metal is absent")


@pytest.fixture(autouse=True)
def _default_backend() -> Iterator[None]:
    yield
    mv.use_backend(None)


def runs_here(name: str, request: pytest.FixtureRequest) -> str:
    """A backend; where it cannot run here the test is skipped with the reason."""
    status = devices.backends()[name]
    if not status.available:
        required = status.name == "metal" and request.config.getoption("--require-metal")
        (pytest.fail if required else pytest.skip)(f"{status.name}: {status.detail}")
    return name


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> CapturedDevice:
    """The captured device, in place of every backend but those of the host."""
    device, opened = CapturedDevice(), devices.device
    monkeypatch.setattr(
        devices, "device", lambda name=None: opened(name) if name in ("host", "numpy") else device
    )
    return device


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.metal if name == "metal" else ()) for name in devices.NAMES]
)
def backend(request: pytest.FixtureRequest) -> str:
    """Each backend."""
    return runs_here(request.param, request)


@pytest.fixture(params=["host", "numpy"])
def cpu_backend(request: pytest.FixtureRequest) -> str:
    """Each backend that computes in NumPy's arrays."""
    return runs_here(request.param, request)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real JupyterLab, over a folder of its own: a ``lab.Lab``."""
    import lab as jupyter  # Playwright is not on the machines that only run kernels

    if jupyter.chromium() is None:
        pytest.skip("no Chromium here; on Debian: apt-get install chromium")
    running = jupyter.Lab(tmp_path_factory.mktemp("lab"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def pages(lab: Any) -> Iterator[Any]:
    """Notebooks of that JupyterLab in a real Chromium: a ``lab.Pages``."""
    import lab as jupyter

    with jupyter.browser() as running:
        yield jupyter.Pages(lab, running)


@pytest.fixture
def page(opened: Any) -> Any:
    """The page of the module's fixture ``opened``, with every view as it began."""
    opened.mouse.move(0, 0)
    for view in opened.locator(".mv").all():
        view.focus()
        opened.keyboard.press("r")
    return opened


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All lessons, exported."""
    from muser_viz.export import export_lessons

    folder = tmp_path_factory.mktemp("export") / "site"
    export_lessons(folder)
    return folder
