"""``make bench``: ratios of times taken in one run. Not a test: nothing here passes or fails."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from model_receipt import Run, decode, reduced
from tqdm import tqdm

import muser_viz as mv
from muser_viz import devices, launches
from muser_viz.layout import Layout
from muser_viz.model.build import geometry_of
from muser_viz.model.mlx_lm import mlx_lm_version
from muser_viz.ring import Ring


def median(act: Callable[[], Any], runs: int = 15) -> float:
    """Seconds, after two warm-ups."""
    act(), act()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


class Stores:
    """Stores into one plane of a backend, without the ring's checks: what the kernels cost."""

    def __init__(self, backend: str, capacity: int, head_major: bool = False) -> None:
        self.device = devices.device(backend)
        self.layout = Layout(capacity, head_major=head_major)
        empty = np.zeros(self.layout.shape, np.float16)
        self.caches = [self.device.buffer(empty) for _ in range(2)]

    def wait(self) -> None:
        """Until every launch so far has ended."""
        self.device.half(self.caches[0])

    def rows(self, count: int, times: int = 1) -> float:
        """Seconds for one store of ``count`` rows, of ``times`` queued one after another."""
        keys, values = (self.device.put(mv.seeded(seed, count, 256)) for seed in (1, 2))
        ring = Ring(self.layout.capacity)

        def act() -> None:
            for _ in range(times):
                if count == 1 and not self.layout.head_major:
                    row = ring.append(ring.next_position)
                    launches.store(self.device, keys, values, *self.caches, 256, row)
                else:
                    reserved = ring.append_batch(ring.next_position, count)
                    launches.store_batch(self.device, keys, values, *self.caches, self.layout, reserved)
            self.wait()

        return median(act) / times


def numpy_store(count: int = 2048) -> float:
    """Seconds for the same store in plain NumPy."""
    keys, values = mv.seeded(1, count, 256), mv.seeded(2, count, 256)
    caches = [np.zeros((count, 256), np.float16) for _ in range(2)]
    rows = np.arange(count)

    def act() -> None:
        for cache, chunk in zip(caches, (keys, values), strict=True):
            cache[rows] = chunk.astype(np.float16)

    return median(act)


def gpu_copy(rows: int) -> float:
    """Seconds to copy K and V of ``rows`` f16 rows on the GPU, twice the bytes as read and written."""
    import mlx.core as mx

    sources = [mx.zeros((rows, 256), mx.float16) for _ in range(2)]
    mx.eval(sources)
    one = mx.array(1, mx.float16)
    return median(lambda: mx.eval([source * one for source in sources]))


def main() -> None:
    """Print the table, or JSON with ``--json FILE``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found: dict[str, float] = {}
    gpu = next((s.name for s in mv.backends() if s.available and s.name in ("metal", "cuda")), None)

    def host() -> None:
        small, large = Stores("host", 2048), Stores("host", 131_072)
        found["host: 2,048 rows, K and V, against NumPy's plane[rows] = x.astype(float16) (times faster)"] = (
            numpy_store() / small.rows(2048)
        )
        found["host: one row into 131,072 rows, against one into 2,048 (times the cost)"] = large.rows(
            1, 200
        ) / small.rows(1, 200)

    def on_gpu() -> None:
        assert gpu is not None
        small, large = Stores(gpu, 2048), Stores(gpu, 131_072)
        grown = Stores(gpu, 131_072, head_major=True)
        found[f"{gpu}: one row into 131,072 rows, against one into 2,048 (times the cost)"] = large.rows(
            1, 200
        ) / small.rows(1, 200)
        copy = gpu_copy(131_072)
        found[f"{gpu}: 131,072 rows stored token-major, against a device copy of the f16 bytes (times)"] = (
            large.rows(131_072) / copy
        )
        found[f"{gpu}: 131,072 rows stored head-major, against a device copy of the f16 bytes (times)"] = (
            grown.rows(131_072) / copy
        )

    def sweep() -> None:
        plane = mv.KvPlane(2048)
        plane.append_batch(0, mv.seeded(1, 3000, 256), mv.seeded(2, 3000, 256))
        query = mv.seeded(3, 8, 128)
        swept = median(lambda: mv.sweep_rotations(plane, query), 3)
        snapshot = plane.snapshot()
        one = median(lambda: mv.attend(mv.KvPlane.restore(snapshot, 7), query), 5)
        found[f"{plane.backend}: 2,048 restores and reads, against one sweep (times the cost)"] = (
            2048 * one / swept
        )
        found[f"{plane.backend}: sweep of 2,048 rotations, 8 query heads x 128 (seconds)"] = swept

    def views() -> None:
        try:
            import bench_views  # not on the machines that only run kernels
        except ModuleNotFoundError as missing:
            tqdm.write(f"the views are not measured: {missing}")
            return
        bench_views.measure(found.__setitem__)

    def model() -> None:
        if mlx_lm_version() is None:
            tqdm.write("the model is not measured: pip install 'muser-viz[model]'")
            return
        for kind in ("float32", "bfloat16"):
            small = reduced(kind)
            run = Run(small, geometry_of(small), True, 0)
            run.say = lambda _: None  # type: ignore[method-assign]
            decode(run)
            for name, said in run.results.items():
                if "times as fast" in name:
                    found[f"model at reduced widths, {kind}: {name}"] = statistics.median(said)

    jobs: list[Callable[[], None]] = [sweep, views, model]
    if mv.backends()["host"].available:
        jobs.insert(0, host)
    if gpu:
        jobs.append(on_gpu)
    for job in tqdm(jobs, desc="bench"):
        job()
    print(mv.backends())
    for name, ratio in found.items():
        print(f"{ratio:8.2f}  {name}")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
