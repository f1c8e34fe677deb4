from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muser_viz as mv
from muser_viz import devices
from muser_viz.devices import compile as compiler

ON_GPU_OR_HOST = [status.name for status in devices.backends() if status.available and status.name != "numpy"]
READERS = ("scan", "lanes", "mlx")

# 64 rotations of a ring of 128 rows, 4 query heads of 32: the scan reader's words.
DIGEST = "ae59825ffb3b076407eb5a73223ebe23bc9c6f12f69d989aec7b8e8868998338"


def plane_of(
    capacity: int, tokens: int, head_dim: int = 6, head_major: bool = False, backend: str | None = None
) -> mv.KvPlane:
    plane = mv.KvPlane(capacity, 2, head_dim, head_major, backend)
    plane.append_batch(0, mv.seeded(1, tokens, 2 * head_dim), mv.seeded(2, tokens, 2 * head_dim))
    return plane


def in_f64(plane: mv.KvPlane, query: np.ndarray) -> np.ndarray:
    """Attention by the definition, in f64."""
    share = len(query) // plane.n_kv_heads
    keys, values = (np.repeat(part.astype(np.float64), share, 0) for part in (plane.keys(), plane.values()))
    score = np.einsum("hd,hld->hl", query, keys) * plane.head_dim**-0.5
    weight = np.exp(score - score.max(1, keepdims=True))
    return np.einsum("hl,hld->hd", weight, values) / weight.sum(1, keepdims=True)


@pytest.mark.parametrize("head_major", [False, True])
@pytest.mark.parametrize(("capacity", "tokens"), [(1, 1), (40, 7), (40, 40), (40, 97), (33, 66)])
@pytest.mark.parametrize("head_dim", [1, 6, 16, 20, 33])
def test_every_reader_reads_attention(
    capacity: int, tokens: int, head_dim: int, head_major: bool, backend: str
) -> None:
    plane = plane_of(capacity, tokens, head_dim, head_major, backend)
    query = mv.seeded(3, 6, head_dim)
    wanted = in_f64(plane, query)
    for reader in READERS:
        got = mv.attend(plane, query, reader)
        assert got.dtype == np.float32
        assert np.abs(got - wanted).max() < 4e-6, reader


@settings(max_examples=30)
@given(
    capacity=st.integers(1, 40),
    tokens=st.integers(1, 90),
    head_dim=st.sampled_from([1, 3, 16, 18]),
    head_major=st.booleans(),
    rotation=st.integers(0, 39),
    reader=st.sampled_from(["scan", "lanes"]),
    scale=st.sampled_from([0.0, 0.1, 1.0, 30.0]),
)
def test_the_kernels_have_numpys_bits(
    capacity: int, tokens: int, head_dim: int, head_major: bool, rotation: int, reader: Any, scale: float
) -> None:
    snapshot = plane_of(capacity, tokens, head_dim, head_major).snapshot()
    query = mv.seeded(3, 4, head_dim) * np.float32(scale)
    oracle = mv.KvPlane.restore(snapshot, rotation % capacity, "numpy")
    wanted = mv.hexbits(mv.attend(oracle, query, reader))
    for name in ON_GPU_OR_HOST:
        plane = mv.KvPlane.restore(snapshot, rotation % capacity, name)
        assert np.array_equal(mv.hexbits(mv.attend(plane, query, reader)), wanted), name
        assert not mv.differing(mv.scores(plane, query), mv.scores(oracle, query)).any()


def test_scores_of_two_rotations_are_the_same_bits_permuted(backend: str) -> None:
    plane = plane_of(24, 40, backend=backend)
    query = mv.seeded(3, 4, 6)
    packed = mv.KvPlane.restore(plane.snapshot(), 0, backend)
    turned = np.roll(mv.scores(packed, query), plane.origin_physical, axis=1)
    assert not mv.differing(turned, mv.scores(plane, query)).any()


@pytest.mark.parametrize("head_major", [False, True])
def test_the_sweep_is_what_restored_planes_give(head_major: bool, backend: str) -> None:
    plane = plane_of(20, 53, head_major=head_major, backend=backend)
    query = mv.seeded(3, 4, 6)
    swept = mv.sweep_rotations(plane, query)
    for rotation in range(20):
        restored = mv.KvPlane.restore(plane.snapshot(), rotation, backend)
        assert not mv.differing(swept[rotation], mv.attend(restored, query)).any()
        again = mv.sweep_rotations(restored, query)
        assert not mv.differing(again, swept).any()


@pytest.mark.parametrize("reader", ["scan", "lanes"])
def test_sums_that_are_exact_show_no_effect(reader: Any) -> None:
    plane = mv.KvPlane(64, 1, 8)
    plane.append_batch(0, np.ones((100, 8), np.float32), np.rint(4 * mv.seeded(2, 100, 8)))
    query = mv.seeded(3, 4, 8)
    own = mv.attend(plane, query, reader)
    for rotation in range(64):
        turned = mv.attend(mv.KvPlane.restore(plane.snapshot(), rotation), query, reader)
        assert not mv.differing(turned, own).any()


def test_the_same_run_twice_is_equal(backend: str) -> None:
    query = mv.seeded(3, 4, 6)
    readers: tuple[Any, ...] = ("scan", "lanes")
    for reader in readers:
        planes = [plane_of(24, 40, backend=backend) for _ in range(2)]
        first, second = (mv.attend(plane, query, reader) for plane in planes)
        assert not mv.differing(first, second).any()


def digest() -> str:
    plane = mv.KvPlane(128, 2, 32)
    plane.append_batch(0, mv.seeded(1, 200, 64), mv.seeded(2, 200, 64))
    query = mv.seeded(3, 4, 32)
    read = mv.sweep_rotations(plane, query)[::2]
    logits = mv.stand_in_logits(read[5], vocab=500, seed=9)
    return hashlib.sha256(read.tobytes() + logits.tobytes()).hexdigest()


def test_the_scan_readers_digest() -> None:
    assert digest() == DIGEST


FLUSH = """
extern "C" unsigned set_control(unsigned bits)
{
#if defined(__SSE__)
    unsigned word = __builtin_ia32_stmxcsr() | bits;
    __builtin_ia32_ldmxcsr(word);
    return word;
#else
    unsigned long long word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    if (bits) word |= 1ull << 24;
    __asm__ volatile("msr fpcr, %0" : : "r"(word));
    return (unsigned)word;
#endif
}
"""


def fresh_digest(folder: Path, flags: str, before: str = "") -> str:
    """The digest from a process of its own, its kernels compiled with other flags."""
    paths = f"import sys; sys.path[:0] = {sys.path!r}\n"
    program = f"{paths}{before}\nimport test_readers\nprint(test_readers.digest())"
    environment = {
        **os.environ,
        "MUSER_VIZ_BACKEND": "host",
        "MUSER_VIZ_CACHE": str(folder),
        "MUSER_VIZ_THREADS": "1",
        "MUSER_VIZ_CXXFLAGS": flags,
    }
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def no_fma_flags() -> list[str]:
    machine = os.uname().machine
    return ["-mno-fma -mno-fma4 -mno-avx512f"] if machine == "x86_64" else []


@pytest.mark.parametrize("flags", ["-O0", "-O3", "-O2 -ffp-contract=fast", *no_fma_flags()])
def test_the_digest_does_not_depend_on_how_it_was_compiled(tmp_path: Path, flags: str) -> None:
    assert fresh_digest(tmp_path, flags) == DIGEST


def test_the_digest_does_not_depend_on_flush_to_zero(tmp_path: Path) -> None:
    built = compiler.shared_object("flush", FLUSH, ())
    control = ctypes.CDLL(str(built)).set_control
    assert control(0) is not None
    before = (
        f"import ctypes; word = ctypes.CDLL({str(built)!r}).set_control(0x8040)\n"
        "import numpy as np\n"
        "assert np.float32(2.0**-126) * np.float32(0.5) == 0, 'flush-to-zero is not on'"
    )
    assert fresh_digest(tmp_path, "", before) == DIGEST


def test_stand_in_logits(backend: str) -> None:
    attended = mv.seeded(5, 4, 6)
    mv.use_backend("numpy")
    wanted = mv.stand_in_logits(attended, vocab=40, seed=3)
    mv.use_backend(backend)
    got = mv.stand_in_logits(attended, vocab=40, seed=3)
    assert (got.shape, got.dtype) == ((40,), np.float32)
    assert not mv.differing(got, wanted).any()
    assert mv.differing(got, mv.stand_in_logits(attended, vocab=40, seed=4)).any()
    assert not mv.differing(got[:9], mv.stand_in_logits(attended, vocab=9, seed=3)).any()


@pytest.mark.parametrize(
    "query",
    [
        np.zeros((3, 6), np.float32),
        np.zeros((0, 6), np.float32),
        np.zeros((4, 5), np.float32),
        np.zeros(6, np.float32),
        np.zeros((4, 6)),
    ],
)
def test_a_query_that_does_not_fit(query: np.ndarray) -> None:
    plane = plane_of(8, 9)
    for reads in (mv.attend, mv.scores, mv.sweep_rotations):
        with pytest.raises(mv.InputError):
            reads(plane, query)


def test_other_refusals() -> None:
    query = mv.seeded(3, 4, 6)
    empty = mv.KvPlane(8, 2, 6)
    for reads in (mv.attend, mv.scores, mv.sweep_rotations):
        with pytest.raises(mv.NotLive, match="append one"):
            reads(empty, query)
    with pytest.raises(mv.InputError, match="fill it first"):
        mv.sweep_rotations(plane_of(8, 7), query)
    with pytest.raises(mv.InputError, match="scan, lanes, mlx"):
        mv.attend(plane_of(8, 7), query, "fast")  # type: ignore[arg-type]
    for bad in ({"vocab": 0}, {"seed": -1}, {"seed": 1 << 32}):
        with pytest.raises(mv.InputError):
            mv.stand_in_logits(query, **bad)
