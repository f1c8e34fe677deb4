"""A real JupyterLab in a real Chromium, for the tests and the bench of the views."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser, Page, sync_playwright

TOKEN = "muser"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str | None:
    """Debian's Chromium, or another one on the path; None where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        try:
            yield running
        finally:
            running.close()


class Lab:
    """A JupyterLab server over a folder of its own, with settings of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = Path(tempfile.mkdtemp(prefix="muser-viz-lab-"))
        environment = os.environ | {
            f"JUPYTER_{name}_DIR": str(self.settings / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")
        }
        environment |= {
            "JUPYTERLAB_SETTINGS_DIR": str(self.settings / "user"),
            "JUPYTERLAB_WORKSPACES_DIR": str(self.settings / "work"),
        }
        self._log = (self.settings / "log").open("w", encoding="utf-8")
        news = (
            self.settings / "user" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
        )
        news.parent.mkdir(parents=True)
        news.write_text('{"fetchNews": "false", "checkForUpdates": false}', encoding="utf-8")
        arguments = (
            "--no-browser",
            "--port=0",
            f"--IdentityProvider.token={TOKEN}",
            "--LabApp.expose_app_in_browser=True",
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "muser_viz", "lab", str(folder), *arguments],
            env=environment,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # the command starts the server; they end together
        )
        self.url = self._address()

    def _address(self) -> str:
        ends = time.monotonic() + 60
        while time.monotonic() < ends and self.process.poll() is None:
            for found in (self.settings / "runtime").glob("jpserver-*.json"):
                said = found.read_text(encoding="utf-8")
                if said.strip().endswith("}"):
                    return str(json.loads(said)["url"])
            time.sleep(0.1)
        raise RuntimeError((self.settings / "log").read_text(encoding="utf-8"))

    def write(self, name: str, *cells: str) -> str:
        """A notebook of code cells; its name."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        }
        nbformat.write(notebook, self.folder / name)
        return name

    def open(self, page: Page, name: str) -> None:
        """Open a notebook and wait for its kernel."""
        page.goto(f"{self.url}lab/tree/{name}?token={TOKEN}&reset")
        page.wait_for_function(
            "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'",
            timeout=90_000,
        )

    def run(self, page: Page) -> None:
        """Run all cells of the open notebook, as from the menu, and wait for the last."""
        page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
        page.wait_for_function(
            """() => {
              const models = jupyterapp.shell.currentWidget.content.widgets.map((cell) => cell.model);
              return models.every((model) =>
                model.type !== 'code' || (model.executionCount > 0 && model.executionState !== 'running'));
            }""",
            timeout=120_000,
        )

    def close(self) -> None:
        """Stop the server and its kernels."""
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(20)
        ends = time.monotonic() + 20
        with contextlib.suppress(ProcessLookupError):  # until the whole group has gone
            while time.monotonic() < ends:
                os.killpg(self.process.pid, 0)
                time.sleep(0.1)
            os.killpg(self.process.pid, signal.SIGKILL)
        self._log.close()
        shutil.rmtree(self.settings, ignore_errors=True)


def listened(page: Page) -> list[str]:
    """A list that fills with the page's console errors and what it throws."""
    heard: list[str] = []

    def message(said: Any) -> None:
        if said.type == "error" and "favicon" not in said.text:
            heard.append(said.text)

    page.on("console", message)
    page.on("pageerror", lambda error: heard.append(str(error)))
    return heard


class Pages:
    """Pages of one browser over one JupyterLab."""

    def __init__(self, lab: Lab, running: Browser) -> None:
        self.lab = lab
        self.running = running

    def open(self, name: str, *cells: str, views: int = 1, **context: Any) -> tuple[Page, list[str]]:
        """A notebook of these cells, run, with so many views on it; and its list of console errors."""
        context = {"viewport": {"width": 1200, "height": 1000}} | context
        page = self.running.new_context(**context).new_page()
        heard = listened(page)
        self.lab.open(page, self.lab.write(name, *cells))
        self.lab.run(page)
        page.wait_for_function(f"document.querySelectorAll('.mv').length >= {views}", timeout=60_000)
        page.wait_for_timeout(300)
        return page, heard


def theme(page: Page, name: str) -> None:
    """Switch JupyterLab's theme ("Light" or "Dark"), and wait for its style sheets."""
    page.evaluate(f"jupyterapp.commands.execute('apputils:change-theme', {{theme: 'JupyterLab {name}'}})")
    light = "true" if name == "Light" else "false"
    page.wait_for_function(f"document.body.dataset.jpThemeLight === '{light}'")
    page.wait_for_timeout(600)
