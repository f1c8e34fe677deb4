from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muser_viz as mv

MASK = (1 << 64) - 1
DIGEST = "eebe70497e417e3028b8c76752c9a2c333d742cb8919da69a9486165ab903518"


def by_hand(seed: int, index: int) -> float:
    """The same number in Python's own integers."""
    x = (index + (seed << 32) + 1) * 0x9E3779B97F4A7C15 & MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    x ^= x >> 31
    parts = [x >> shift & 0xFFFF for shift in (0, 16, 32, 48)]
    return (sum(parts) - 2 * 65535) / 32768


def test_the_bits_are_the_same_on_every_machine() -> None:
    assert hashlib.sha256(mv.seeded(1, 1000).astype("<f4").tobytes()).hexdigest() == DIGEST


@given(seed=st.integers(0, (1 << 32) - 1))
def test_numbers_are_those_of_plain_integers(seed: int) -> None:
    assert mv.seeded(seed, 5).tolist() == [by_hand(seed, index) for index in range(5)]


def test_the_same_twice() -> None:
    assert mv.seeded(7, 3, 5).tobytes() == mv.seeded(7, 3, 5).tobytes()


@pytest.mark.parametrize("seed", [0, 1, 2, (1 << 32) - 1])
def test_mean_and_deviation(seed: int) -> None:
    values = mv.seeded(seed, 100_000).astype(np.float64)
    assert abs(values.mean()) < 0.02
    assert abs(values.std() - 1.1547) < 0.01
    assert np.abs(values).max() < 4


def test_seeds_differ() -> None:
    firsts = {mv.seeded(seed, 100).tobytes() for seed in range(50)}
    assert len(firsts) == 50
    assert abs(np.corrcoef(mv.seeded(1, 10_000), mv.seeded(2, 10_000))[0, 1]) < 0.05


@given(short=st.integers(0, 60), long=st.integers(60, 200))
def test_more_numbers_begin_with_fewer(short: int, long: int) -> None:
    assert mv.seeded(3, short).tobytes() == mv.seeded(3, long)[:short].tobytes()


def test_a_shape_is_a_reshape() -> None:
    assert mv.seeded(3, 2, 3, 4).tobytes() == mv.seeded(3, 24).tobytes()
    assert mv.seeded(3, 2, 3, 4).shape == (2, 3, 4)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2)])
def test_shapes_at_the_edge(shape: tuple[int, ...]) -> None:
    values = mv.seeded(1, *shape)
    assert values.shape == shape
    assert values.dtype == np.float32


def test_values_are_whole_steps_of_a_power_of_two() -> None:
    steps = mv.seeded(5, 10_000).astype(np.float64) * 2.0**15
    assert np.array_equal(steps, np.rint(steps))
    assert np.abs(steps).max() <= 2 * 65535


@pytest.mark.parametrize("seed", [-1, 1 << 32, 1.0, True, "1", None])
def test_what_is_no_seed(seed: Any) -> None:
    with pytest.raises(mv.InputError, match=r"^seed is .*from 0 to 4294967295$"):
        mv.seeded(seed, 3)


@pytest.mark.parametrize("size", [-1, 2.0, True, None, (2, 3)])
def test_what_is_no_size(size: Any) -> None:
    with pytest.raises(mv.InputError, match=r"^size is .*from 0$"):
        mv.seeded(1, 2, size)
