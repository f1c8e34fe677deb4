from __future__ import annotations

import base64
from typing import Any

import pytest

import muser_viz as mv
from muser_viz.bill_picture import Price

VIEW = "application/vnd.jupyter.widget-view+json"
LIMIT = 131_072


def price(tokens: int = LIMIT, context: int = LIMIT, slots: int = 1, precision: str = "f16") -> Price:
    return Price(mv.MUSE_GLIMMER, context, slots, tokens, precision)


def test_it_starts_as_asked() -> None:
    assert mv.Bill().price == price()
    bill = mv.Bill(context=130_814, tokens=3_001, slots=3, precision="Q8_0")
    assert bill.price == price(3_001, 130_814, 3, "Q8_0")
    assert bill.shape["head_dim"] == 128
    assert bill.shape["full_every"] == 4
    assert bill.shape["limit"] == LIMIT
    wanted = {
        "context": 130_814,
        "tokens": 3_001,
        "slots": 3,
        "window": 2_048,
        "layers": 52,
        "heads": 2,
        "precision": "Q8_0",
        "chosen": -1,
    }
    assert {name: bill.began[name] for name in wanted} == wanted


def test_what_is_sent_is_small() -> None:
    bill = mv.Bill()
    assert len(bill._esm) + len(bill._css) <= 64_000


@pytest.mark.parametrize(
    ("name", "value", "live"),
    [
        ("tokens", 2_049, 81_788_928 + 2_049 * 13_312),
        ("slots", 4, 7_306_477_568),
        ("window", 65_536, 39 * 65_536 * 1_024 + LIMIT * 13_312),
        ("layers", 4, (3 * 2_048 + LIMIT) * 1_024),
        ("heads", 5, 1_826_619_392 // 2 * 5),
        ("precision", "Q8_0", 970_391_552),
    ],
)
def test_every_factor_can_be_set(name: str, value: Any, live: int) -> None:
    bill = mv.Bill()
    bill.show(**{name: value})
    assert getattr(bill, name) == value
    assert sum(bill.price.live()) == live
    bill.show(context=1_000, tokens=1_000)
    assert bill.price.context == 1_000


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"context": 0}, r"^context is 0; .*from 1 to 131072$"),
        ({"tokens": LIMIT + 1}, r"^tokens is 131073; .*from 1 to 131072$"),
        ({"context": 64}, r"^tokens is 131072; .*from 1 to 64$"),
        ({"slots": 2**32 + 1}, "^slots is 4294967297"),
        ({"window": 0}, "^sliding_window is 0"),
        ({"heads": 1.5}, "^heads is 1.5"),
        ({"precision": "Q4_0"}, "^precision is 'Q4_0'"),
        ({"row": 3}, "^row is no factor; give context, tokens"),
    ],
)
def test_a_refusal_changes_nothing(asked: dict[str, Any], refusal: str) -> None:
    bill = mv.Bill()
    with pytest.raises(mv.InputError, match=refusal):
        bill.show(**asked)
    assert bill.price == price()


def test_another_geometry() -> None:
    geometry = mv.Geometry(n_layers=3, full_every=2, n_kv_heads=1, head_dim=8, context_limit=7)
    bill = mv.Bill(geometry, context=7, slots=2)
    assert bill.price == Price(geometry, 7, 2, 7, "f16")
    with pytest.raises(mv.InputError, match="multiple of 32"):
        bill.show(precision="Q8_0")
    with pytest.raises(mv.InputError, match="^head_dim is"):
        mv.Bill(mv.Geometry(head_dim=2**33))


def test_three_forms() -> None:
    data, about = mv.Bill(tokens=5)._repr_mimebundle_()
    assert VIEW in data
    assert data["text/plain"] == mv.draw_bill(tokens=5).text == price(5).text()
    assert base64.b64decode(data["image/png"]) == mv.draw_bill(tokens=5).png
    assert about == {"image/png": {"alt": price(5).text()}}
