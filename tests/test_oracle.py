from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import muser_viz as mv
from muser_viz.devices import oracle
from muser_viz.devices.source import catalogue

number = st.floats(width=32, min_value=-(2.0**40), max_value=2.0**40, allow_subnormal=False)


def rounded(exact: Fraction) -> np.float32:
    """The nearest f32, ties to even, of an exact value: by search among neighbours."""
    near = np.float32(float(exact))
    around = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    return min(around, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.uint32)) & 1))


@given(a=number, b=number, c=number)
def test_fma_rounds_once(a: float, b: float, c: float) -> None:
    a, b, c = (0.0 if abs(x) < 2.0**-40 else x for x in (a, b, c))
    wanted = rounded(Fraction(a) * Fraction(b) + Fraction(c))
    assert oracle.fma(np.float32(a), np.float32(b), np.float32(c)) == wanted


def test_fma_where_two_roundings_would_go_wrong() -> None:
    a, b = np.float32(1 + 2.0**-23), np.float32(1 + 2.0**-12)
    c = np.float32(2.0**-60)
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    assert oracle.fma(a, b, c) == rounded(exact)
    tie = oracle.fma(np.float32(2.0**24), np.float32(1), np.float32(1))
    above = oracle.fma(np.float32(1 + 2.0**-23), np.float32(2.0**24 - 1), np.float32(2.0**-30))
    assert (tie, above) == (
        np.float32(2.0**24),
        rounded(Fraction(1 + 2.0**-23) * (2**24 - 1) + Fraction(2.0**-30)),
    )


def test_exp_is_an_exponential() -> None:
    x = np.maximum(-np.abs(mv.seeded(1, 20_000)) * np.float32(12), np.float32(-40))
    with np.errstate(under="ignore"):
        exact = np.exp(x.astype(np.float64)).astype(np.float32)
    assert mv.ulp_distance(oracle.exp(x), exact).max() <= 2
    edges = np.array([0, -(2.0**-27), -40, np.nextafter(np.float32(-40), np.float32(-50)), -1e30], np.float32)
    got = oracle.exp(edges)
    assert got[:2].tolist() == [1, 1]
    assert got[2] > 0
    assert got[3:].tolist() == [0, 0]


def test_every_kernel_has_its_oracle() -> None:
    assert set(oracle._KERNELS) == set(catalogue())
