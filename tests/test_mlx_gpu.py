"""The Metal path, by the source that MLX generates; on Metal itself where there is one."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from captured import CapturedDevice
from conftest import cases
from test_plane import rows
from test_selftest import ended
from walk import Expected, check_state

import muser_viz as mv
from muser_viz import selftest
from muser_viz.devices import mlx_gpu
from muser_viz.devices.source import catalogue

RING_CASES = cases("ring.json")


@pytest.mark.parametrize("head_major", [False, True])
def test_the_self_test_on_the_source_that_mlx_generates(captured: CapturedDevice, head_major: bool) -> None:
    testing = selftest.run("metal", head_major, 300)
    assert ended(testing) == (600, "")
    assert {key[0] for key in captured.sources} >= set(catalogue()) - {
        "muser_kv_store_f16" if head_major else ""
    }


@pytest.mark.parametrize("head_major", [False, True], ids=["token-major", "head-major"])
@pytest.mark.parametrize("case", RING_CASES, ids=lambda case: str(case["id"]))
@pytest.mark.usefixtures("captured")
def test_case_byte_for_byte(case: dict[str, Any], head_major: bool) -> None:
    plane = mv.KvPlane(case["capacity"], 2, 4, head_major)
    wanted = Expected(case["capacity"], 2, 4)
    for step in case["steps"]:
        if "error" in step:
            continue
        keys, values = rows(step["position"], step.get("count", 1))
        if step["op"] == "append":
            assert plane.append(step["position"], keys[0], values[0]) == step["row"]
        else:
            plane.append_batch(step["position"], keys, values)
        live = min(len(keys), plane.capacity)
        if live:
            first = step["position"] + len(keys) - live
            wanted.put(plane.physical(first), keys[-live:], values[-live:])
        check_state(plane, step)
        wanted.check(plane)


@pytest.mark.parametrize("reader", ["scan", "lanes"])
@pytest.mark.usefixtures("captured")
def test_the_readers_bits(reader: Any) -> None:
    for head_major in (False, True):
        plane = mv.KvPlane(33, 2, 20, head_major)
        plane.append_batch(0, mv.seeded(1, 50, 40), mv.seeded(2, 50, 40))
        oracle = mv.KvPlane.restore(plane.snapshot(), backend="numpy")
        query = mv.seeded(3, 6, 20)
        assert not mv.differing(mv.attend(plane, query, reader), mv.attend(oracle, query, reader)).any()
        assert not mv.differing(mv.sweep_rotations(plane, query), mv.sweep_rotations(oracle, query)).any()


@pytest.mark.usefixtures("captured")
def test_a_plane_smaller_than_eight_elements_is_written_in_place() -> None:
    plane = mv.KvPlane(1, 1, 2)
    plane.append(0, np.float32([1, 2]), np.float32([3, 4]))
    assert plane.raw_key().tolist() == [[1, 2]]
    with pytest.raises(ZeroDivisionError):
        _broken_step()
    plane.reset()
    assert not plane.raw_value().any()


def _broken_step() -> None:
    store = mv.KvStore(mv.Geometry(4, 32, 2, 3, 64), 40)
    before = [plane.raw_key().tobytes() for plane in store.planes]
    try:
        with store.step(0) as step:
            step.write(0, mv.seeded(1, 6), mv.seeded(2, 6))
            raise ZeroDivisionError
    finally:
        assert [plane.raw_key().tobytes() for plane in store.planes] == before


def test_every_launch_that_touches_a_plane_takes_its_fence_and_gives_one_back(
    captured: CapturedDevice,
) -> None:
    plane = mv.KvPlane(16, 2, 4)
    taken = captured.watch(lambda inputs: [id(array) for array in inputs])
    for position in range(3):
        plane.append(position, mv.seeded(1, 8), mv.seeded(2, 8))
        stored: Any = plane.key_cache
        fence = stored.fence
        assert fence is plane.value_cache.fence  # type: ignore[attr-defined]
        mv.scores(plane, mv.seeded(3, 2, 4))
        assert id(fence) in taken[-1]
        assert stored.fence is not fence


def test_a_launch_is_given_eight_elements_of_a_plane_and_writes_a_row_beyond_them(
    captured: CapturedDevice,
) -> None:
    """MLX counts all of what it is given as read, and sends work off early."""
    plane = mv.KvPlane(4096, 2, 4)
    given = captured.watch(lambda inputs: [array.size for array in inputs])
    key, value = mv.seeded(1, 4096, 8), mv.seeded(2, 4096, 8)
    plane.append_batch(0, key[:-1], value[:-1])
    plane.append(4095, key[-1], value[-1])
    assert [max(sizes[2:]) for sizes in given] == [9, 8]  # 9 scalars
    assert np.array_equal(plane.raw_key(), key.astype(np.float16))
    assert np.array_equal(plane.raw_value(), value.astype(np.float16))
    undo = plane.reservation_undo(4096, 1)
    plane.append(4096, key[5], value[5])
    plane.undo(replace(undo, contents=(np.zeros((1, 8), np.float16),) * 2))
    plane.append(4096, key[6], value[6])
    assert np.array_equal(plane.raw_key()[0], key[6].astype(np.float16))


@pytest.mark.parametrize("platform", ["metal", "cuda"])
def test_the_body_is_the_files_own(platform: Any) -> None:
    for kernel in catalogue().values():
        outputs = sum(p.kind == "out" for p in kernel.buffers)
        made = mlx_gpu.generated(kernel, platform, (True,) * outputs)
        assert made["source"].endswith(kernel.body)
        helpers = made["header"].replace("__device__ static inline", "static inline")
        assert kernel.helpers in helpers
        assert made["output_names"] == ["muser_fence"]
        # MLX finds these by substring and adds arguments for them
        assert not re.search(r"_(shape|strides|ndim)\b", made["source"] + made["header"])


@pytest.mark.parametrize("platform", ["metal", "cuda"])
def test_the_first_scalars_can_be_constants(platform: Any) -> None:
    kernel = catalogue()["muser_kv_store_rows_f16"]
    given = mlx_gpu.generated(kernel, platform, (True, True, False, False), "bfloat16", False, (256, 128))
    assert "const uint kv_dim = 256u;\nconst uint head_dim = 128u;\n" in given["source"]
    assert "const uint capacity = muser_words[2];" in given["source"]
    # MLX on Metal keeps a library under a kernel's name
    assert given["name"] != mlx_gpu.generated(kernel, platform, (True, True, False, False))["name"]


def test_k_of_another_shape_or_type_is_not_queued(captured: CapturedDevice) -> None:
    launch = captured.prepared(
        "muser_kv_store_batch_f16", 32, (), (True, True), "float32", takes=(1, 2, 1, 16)
    )
    row = mx.array(mv.seeded(1, 1, 2, 1, 16))
    for key, value in ((row[:, :1], row), (row, row.astype(mx.float16)), (row, np.array(row))):
        assert launch.queue(key, value) == []
        with pytest.raises(mv.KernelError, match=r"prepared for float32 \(1, 2, 1, 16\)"):
            launch(None, [key, value], [])
    assert not captured.calls
