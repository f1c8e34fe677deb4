from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import muser_viz as mv
from muser_viz import devices
from muser_viz.devices.protocol import Fresh


def said(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(sys.path)
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_backend_is_told_and_the_others_say_why() -> None:
    table = mv.backends()
    assert [status.name for status in table] == ["metal", "cuda", "host", "numpy"]
    assert all(status.detail for status in table)
    assert table["numpy"].available
    assert len(repr(table).splitlines()) == 4
    with pytest.raises(mv.InputError, match="'tpu' was asked for; there are metal"):
        table["tpu"]


def test_a_backend_asked_for_is_used(backend: str) -> None:
    mv.use_backend(backend)
    assert mv.KvPlane(4).backend == backend
    mv.use_backend(None)


def test_a_backend_that_cannot_run_here() -> None:
    absent = [status.name for status in mv.backends() if not status.available]
    for name in absent:
        for ask in (lambda n=name: mv.use_backend(n), lambda n=name: mv.KvPlane(4, backend=n)):
            with pytest.raises(mv.BackendUnavailable, match=f"'{name}' cannot run here: .+"):
                ask()
    with pytest.raises(mv.InputError, match="'tpu'"):
        mv.use_backend("tpu")


def test_the_environment_picks_one() -> None:
    program = "import muser_viz as mv; print(mv.KvPlane(4).backend)"
    assert said(program, MUSER_VIZ_BACKEND="numpy").stdout.strip() == "numpy"


def test_a_wrong_name_in_the_environment_is_one_clear_error() -> None:
    ran = said("import muser_viz as mv; mv.KvPlane(4)", MUSER_VIZ_BACKEND="gpu")
    last = ran.stderr.strip().splitlines()[-1]
    assert "MUSER_VIZ_BACKEND is 'gpu'; set it to one of metal, cuda, host, numpy" in last


def test_without_a_compiler_numpy_stands_in_with_one_warning() -> None:
    program = (
        "import muser_viz as mv, muser_viz.devices as d\n"
        "d._BUILDERS['metal'] = d._BUILDERS['cuda'] = d._BUILDERS['host']\n"
        "print([mv.KvPlane(4).backend for _ in range(3)], mv.backends()['host'].available)"
    )
    ran = said(program, CXX="no-such-compiler")
    assert ran.stdout.strip() == "['numpy', 'numpy', 'numpy'] False"
    assert ran.stderr.count("RuntimeWarning") == 1
    assert "pip install 'muser-viz[compiler]'" in ran.stderr


def test_both_libraries_of_mlx_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        def __init__(self, name: str) -> None:
            self.metadata = {"Name": name}

    monkeypatch.setattr(
        devices.metadata, "distributions", lambda: [Installed("mlx-cpu"), Installed("mlx-cuda-13")]
    )
    assert "pip uninstall -y mlx-cpu mlx-cuda-13" in str(devices.installed_twice())
    monkeypatch.setattr(devices.metadata, "distributions", lambda: [Installed("mlx-cpu")])
    assert devices.installed_twice() is None


def test_importing_is_cheap() -> None:
    program = (
        "import sys, time\nt = time.perf_counter()\nimport muser_viz\nt = time.perf_counter() - t\n"
        "print(t, sorted({'mlx', 'matplotlib', 'ipywidgets', 'numpy'} & set(sys.modules)))"
    )
    seconds, loaded = min(said(program).stdout.strip().split(" ", 1) for _ in range(3))
    assert loaded == "[]"
    assert float(seconds) < 0.1


def test_every_public_name_is_there() -> None:
    for name in mv.__all__:
        assert getattr(mv, name) is not None
    assert set(mv.__all__) <= set(dir(mv))
    with pytest.raises(AttributeError, match="no attribute 'ring_buffer'"):
        mv.ring_buffer  # noqa: B018


def test_every_public_name_has_a_docstring() -> None:
    for name in set(mv.__all__) - {"__version__", "MUSE_GLIMMER"}:
        assert getattr(mv, name).__doc__, name


def test_an_array_of_another_dtype_never_reaches_a_kernel() -> None:
    device = devices.device("host")
    wrong: Any = np.zeros(4)
    with pytest.raises(mv.KernelError, match="scores is float64; it takes C-ordered float32"):
        device.launch("muser_weights_f32", 1, [wrong, Fresh((1, 4)), 1, 4])


def test_a_thread_past_the_grid_writes_nothing(backend: str) -> None:
    device = devices.device(backend)
    if backend == "numpy":
        pytest.skip("numpy: runs no kernel, so it has no threads")
    cache = [device.buffer(np.full((4, 8), 7, np.float16)) for _ in range(2)]
    row = device.put(mv.seeded(1, 8))
    device.launch("muser_kv_store_f16", 100, [row, row, *cache, 8, 2])
    for each in cache:
        stored = device.get(each)
        assert np.array_equal(stored[2], mv.seeded(1, 8).astype(np.float16))
        assert (np.delete(stored, 2, axis=0) == 7).all()
    chunk = device.put(mv.seeded(2, 3, 8))
    device.launch("muser_kv_store_batch_f16", 100, [chunk, chunk, *cache, 8, 1, 2, 0, 4, 0, 0, 4, 0])
    for each in cache:
        stored = device.get(each)
        assert (stored[[0, 3]] == 7).all()
        assert np.array_equal(stored[1:3], mv.seeded(2, 3, 8)[1:].astype(np.float16))
