"""The views in ``make bench``: click to changed pixel, frames of play, bytes; beside plt.show."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lab as jupyter
import numpy as np
from playwright.sync_api import Page

CLICKS = 60
OURS = """import muser_viz as mv
ring = mv.Ring(2048)
ring.append_batch(0, 2040)
mv.RingPlayer(mv.RingTrace.appends(ring, 4096), speed=240)"""
PEER = """import ipywidgets, muser_viz as mv
import matplotlib.pyplot as plt
ring = mv.Ring(2048)
ring.append_batch(0, 2040)
trace = mv.RingTrace.appends(ring, 4096)

def show(step):
    tokens = trace.ring(step).occupants()
    plt.figure(figsize=(8, 4))
    plt.imshow(tokens.reshape(32, 64))
    plt.title(trace.sentence(step))
    plt.show()

ipywidgets.interact(show, step=ipywidgets.IntSlider(0, -1, 4095))"""

# A picture's content in one number, at each frame; a wait for the next frame where it is another.
WATCH = """window.watch = {
  seen(found) {
    if (found.tagName === 'IMG') return found.complete && found.naturalWidth ? found.src : null;
    const small = watch.small ??= new OffscreenCanvas(360, 180);
    const g = small.getContext('2d', { willReadFrequently: true });
    g.clearRect(0, 0, 360, 180);
    g.drawImage(found, 0, 0, 360, 180);
    return new Uint32Array(g.getImageData(0, 0, 360, 180).data.buffer).reduce((h, w) => (h * 31 + w) | 0, 0);
  },
  async click(act, picture) {
    const before = watch.seen(picture()), start = performance.now();
    act();
    return new Promise((done) => {
      const look = () => {
        const now = picture() && watch.seen(picture());
        const taken = performance.now() - start;
        if ((now !== null && now !== before) || taken > 5000) done(taken);
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    });
  },
  async frames(picture, ms) {
    let last = null, changed = 0;
    const start = performance.now();
    return new Promise((done) => {
      const look = () => {
        const now = picture() && watch.seen(picture());
        if (now !== null && now !== last) { changed += 1; last = now; }
        if (performance.now() - start > ms) done((1000 * changed) / ms);
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    });
  },
}"""


def clicks(page: Page, act: str, picture: str) -> list[float]:
    """Milliseconds from each click to the frame where the picture has changed."""
    times = []
    for _ in range(CLICKS + 5):
        times.append(page.evaluate(f"watch.click(() => {{ {act} }}, () => {picture})"))
        page.wait_for_timeout(60)
    return times[5:]


def measure(note: Callable[[str, float], None]) -> None:
    """Note each figure by name; nothing is noted where there is no Chromium."""
    if jupyter.chromium() is None:
        return
    with tempfile.TemporaryDirectory() as folder, jupyter.browser() as running:
        lab = jupyter.Lab(Path(folder))
        try:
            ours, moved = _open(lab, running, "ours.ipynb", OURS, ".mv[data-step]")
            opened = sum(size for size, text in moved["received"] if b'"comm_open"' in text)
            moved["sent"].clear()
            canvas = "document.querySelector('.mv canvas')"
            fast = clicks(ours, "document.querySelector('.mv button.mv-step').click()", canvas)
            ours.locator(".mv button.mv-play").click()
            frames = ours.evaluate(f"watch.frames(() => {canvas}, 5000)")
            ours.locator(".mv button.mv-play").click()
            sent = sum(size for size, _ in moved["sent"])
            ours.context.close()
            peer, _ = _open(lab, running, "peer.ipynb", PEER, ".noUi-handle")
            picture = "document.querySelector('.jp-OutputArea img')"
            peer.wait_for_selector(".jp-OutputArea img")
            key = (
                "document.querySelector('.noUi-handle').dispatchEvent("
                "new KeyboardEvent('keydown', { key: 'ArrowRight', keyCode: 39, bubbles: true }))"
            )
            slow = clicks(peer, key, picture)
            peer.context.close()
        finally:
            lab.close()
    for name, times in (("RingPlayer", fast), ("interact and plt.show", slow)):
        note(f"{name}: click to changed pixel, median (ms)", float(np.median(times)))
        note(f"{name}: click to changed pixel, p95 (ms)", float(np.percentile(times, 95)))
    ratio = float(np.median(slow) / np.median(fast))
    note("interact and plt.show against RingPlayer, medians (times)", ratio)
    note("RingPlayer: frames a second that changed, in play", float(frames))
    note("RingPlayer: bytes to the kernel over all steps and play", float(sent))
    note("RingPlayer: kB sent to the page once, module and style included", opened / 1000)


def _open(
    lab: jupyter.Lab, running: Any, name: str, cell: str, wait: str
) -> tuple[Page, dict[str, list[Any]]]:
    """A notebook of one cell, run; the page, and what its sockets move."""
    page = running.new_context(viewport={"width": 1400, "height": 900}).new_page()
    moved: dict[str, list[Any]] = {"sent": [], "received": []}

    def kept(way: str) -> Callable[[Any], None]:
        def keep(frame: Any) -> None:
            content = frame if isinstance(frame, bytes) else frame.encode()
            moved[way].append((len(content), content))

        return keep

    page.on("websocket", lambda socket: [socket.on(f"frame{way}", kept(way)) for way in moved])
    lab.open(page, lab.write(name, cell))
    lab.run(page)
    page.wait_for_selector(wait)
    page.wait_for_timeout(2000)
    page.evaluate(WATCH)
    return page, moved
