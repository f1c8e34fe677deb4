from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muser_viz as mv

LIMIT = 131_072
contexts = st.integers(1, LIMIT)


def product(multiplication: str) -> int:
    return math.prod(int(factor) for factor in multiplication.split(" x "))


def test_rows_and_tokens() -> None:
    bill = mv.footprint()
    assert bill.row == 512
    assert bill.token_layer == 1_024
    assert bill.token == 53_248 == 52 * 1024


def test_one_slot_at_the_limit() -> None:
    bill = mv.footprint(context=LIMIT)
    assert bill == mv.footprint(mv.MUSE_GLIMMER, LIMIT, 1) == mv.footprint()
    assert bill.sliding_allocated == bill.sliding_live == 81_788_928 == 78 * 1024**2
    assert bill.full_allocated == bill.full_live == 1_744_830_464 == 1.625 * 1024**3
    assert bill.allocated == bill.live == 1_826_619_392
    assert f"{bill.allocated / 1e9:.3f}" == "1.827"
    assert f"{bill.full_share:.2%}" == "95.52%"


def test_four_slots() -> None:
    four = mv.footprint(slots=4)
    assert four.allocated == four.live == 7_306_477_568
    assert f"{four.allocated / 1e9:.3f}" == "7.306"
    assert four.full_share == mv.footprint().full_share
    assert (four.row, four.token_layer, four.token) == (512, 1_024, 53_248)


def test_the_handoff() -> None:
    bill = mv.footprint(context=130_814)
    assert bill.full_live == 130_814 * 13_312
    assert bill.sliding_live == 3 * 2_048 * 13_312
    assert bill.live == 1_823_184_896
    assert f"{bill.full_live / bill.live:.2%}" == "95.51%"
    assert f"{bill.sliding_live / bill.live:.2%}" == "4.49%"


def test_q8_0_costs_more_than_half() -> None:
    elements = mv.footprint().allocated // 2
    assert elements % 32 == 0
    assert elements // 32 * 34 == 970_391_552
    assert f"{elements // 32 * 34 / mv.footprint().allocated:.3f}" == "0.531"


@pytest.mark.parametrize(
    ("context", "cost"),
    [(2, 53_248), (33, 53_248), (2_047, 53_248), (2_048, 53_248), (2_049, 13_312), (LIMIT, 13_312)],
)
def test_what_one_more_token_costs(context: int, cost: int) -> None:
    assert mv.footprint(context=context).live - mv.footprint(context=context - 1).live == cost


def test_live_bytes_at_the_window() -> None:
    bill = mv.footprint(context=2_048)
    assert bill.live == 2_048 * 53_248
    assert bill.sliding_live == 81_788_928
    assert mv.footprint(context=2_049).sliding_live == 81_788_928
    assert mv.footprint(context=2_049).live == 2_048 * 53_248 + 13_312


def test_live_and_allocated_differ_below_32_tokens() -> None:
    bill = mv.footprint(context=1)
    assert bill.live == 53_248
    assert bill.allocated == 32 * 53_248


@given(context=contexts, slots=st.integers(1, 9))
def test_terms_multiply_to_their_bytes(context: int, slots: int) -> None:
    bill = mv.footprint(context=context, slots=slots)
    terms = bill.terms()
    for name, multiplication, size in terms:
        assert product(multiplication) == size, name
    named = {name: size for name, _, size in terms}
    assert named["sliding, live"] + named["full, live"] == bill.live
    assert named["sliding, allocated"] + named["full, allocated"] == bill.allocated
    assert named["one token, all layers"] == bill.token


@given(context=contexts)
def test_allocated_is_what_the_planes_take(context: int) -> None:
    bill = mv.footprint(context=context)
    glimmer = mv.MUSE_GLIMMER
    rows = dict.fromkeys(mv.LayerKind, 0)
    for layer in range(glimmer.n_layers):
        rows[glimmer.kind(layer)] += glimmer.capacity(layer, context)
    assert bill.sliding_allocated == rows[mv.LayerKind.SLIDING_ROPE] * 1_024
    assert bill.full_allocated == rows[mv.LayerKind.FULL_NOPE] * 1_024
    assert bill.live <= bill.allocated


def test_another_geometry() -> None:
    geometry = mv.Geometry(n_layers=3, sliding_window=40, n_kv_heads=1, head_dim=8, full_every=3)
    bill = mv.footprint(geometry, context=100, slots=2)
    assert (bill.row, bill.token_layer, bill.token) == (16, 32, 96)
    assert (bill.sliding_live, bill.full_live) == (2 * 2 * 40 * 32, 2 * 100 * 32)
    assert all(product(multiplication) == size for _, multiplication, size in bill.terms())


@pytest.mark.parametrize(("full_every", "share"), [(1, 1.0), (99, 0.0)])
def test_one_class_of_layers_alone(full_every: int, share: float) -> None:
    bill = mv.footprint(mv.Geometry(full_every=full_every), context=100)
    assert bill.full_share == share
    assert bill.allocated == 100 * 53_248
    assert all(product(multiplication) == size for _, multiplication, size in bill.terms())


@pytest.mark.parametrize("context", [0, -1, LIMIT + 1, 2048.0, True, None])
def test_what_is_no_context(context: Any) -> None:
    with pytest.raises(mv.InputError, match=r"^context is .*from 1 to 131072$"):
        mv.footprint(context=context)


@pytest.mark.parametrize("slots", [0, -1, 1.0, True])
def test_what_is_no_number_of_slots(slots: Any) -> None:
    with pytest.raises(mv.InputError, match=r"^slots is .*from 1$"):
        mv.footprint(slots=slots)
