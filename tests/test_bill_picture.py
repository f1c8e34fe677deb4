from __future__ import annotations

import base64
import functools
import html
from typing import Any

import ipywidgets as widgets
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muser_viz as mv
from muser_viz import bill_picture as module
from muser_viz.bill_picture import Price

PNG = b"\x89PNG\r\n\x1a\n"
LIMIT = 131_072
VIEW = "application/vnd.jupyter.widget-view+json"
drawn_once = functools.cache(module._drawn)


@pytest.fixture
def _drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of the time: each bill is drawn once."""
    monkeypatch.setattr(module, "_drawn", drawn_once)


def price(tokens: int = LIMIT, context: int = LIMIT, slots: int = 1, precision: str = "f16") -> Price:
    return Price(mv.MUSE_GLIMMER, context, slots, tokens, precision)


def controls(bill: mv.Bill) -> dict[str, Any]:
    kinds = (widgets.FloatLogSlider, widgets.IntSlider, widgets.ToggleButtons)
    return {child.description: child for child in bill.children if isinstance(child, kinds)}


def image(bill: mv.Bill) -> bytes:
    (found,) = (child for child in bill.children if isinstance(child, widgets.Image))
    return bytes(found.value)


def said(bill: mv.Bill) -> str:
    (found,) = (child for child in bill.children if isinstance(child, widgets.HTML))
    return html.unescape(found.value)


def check_shows(bill: mv.Bill, wanted: Price) -> None:
    assert bill.price == wanted
    assert image(bill) == drawn_once(wanted).png
    assert said(bill) == f'<pre role="status">{wanted.text()}</pre>'


@given(tokens=st.integers(1, LIMIT), room=st.integers(0, LIMIT), slots=st.integers(1, 9))
def test_f16_is_the_footprint(tokens: int, room: int, slots: int) -> None:
    context = min(LIMIT, tokens + room)
    paid = price(tokens, context, slots)
    live, allocated = (mv.footprint(context=n, slots=slots) for n in (tokens, context))
    assert paid.live() == (live.sliding_live, live.full_live)
    assert paid.allocated == (allocated.sliding_allocated, allocated.full_allocated)
    assert all(a <= b for a, b in zip(paid.live(), paid.allocated, strict=True))


@pytest.mark.parametrize(
    ("precision", "row", "slot"),
    [("f16", 512, 1_826_619_392), ("Q8_0", 272, 970_391_552), ("f32", 1_024, 3_653_238_784)],
)
def test_precision_is_a_factor(precision: str, row: int, slot: int) -> None:
    paid = price(precision=precision)
    assert paid.row == row
    assert sum(paid.live()) == sum(paid.allocated) == slot
    assert paid.live(1) == (39 * 2 * row, 13 * 2 * row)


@pytest.mark.parametrize(("window", "even"), [(2_048, 6_144), (32_768, 98_304), (65_536, None)])
def test_where_the_classes_are_even(window: int, even: int | None) -> None:
    paid = Price(mv.Geometry(sliding_window=window), LIMIT, 1, LIMIT, "f16")
    assert paid.even == even
    if even is not None:
        sliding, full = paid.live(even)
        assert sliding == full
        assert paid.live(even - 1)[1] < sliding
        assert f"half or more from {even:,} tokens on" in paid.text()


@pytest.mark.parametrize("full_every", [1, 2, 99])
def test_nowhere_even(full_every: int) -> None:
    assert Price(mv.Geometry(full_every=full_every), LIMIT, 1, LIMIT, "f16").even is None


def test_even_past_the_context() -> None:
    assert price(6_143, 6_143).even is None
    assert price(1, 6_144).even == 6_144


def test_the_text_says_the_bill() -> None:
    picture = mv.draw_bill(tokens=3_000)
    assert picture.png.startswith(PNG)
    for words in (
        "max_context 131,072, tokens 3,000",
        "121,724,928      1,826,619,392",
        "95.52%",
        "25.00%",
        "from 6,144 tokens on",
    ):
        assert words in picture.text
    assert picture.text == price(3_000).text()


@pytest.mark.parametrize(
    "asked",
    [
        {"context": 1},
        {"context": 2_048, "tokens": 1},
        {"geometry": mv.Geometry(full_every=1), "slots": 4},
        {"geometry": mv.Geometry(full_every=99), "context": 100},
        {
            "geometry": mv.Geometry(n_layers=3, full_every=2, n_kv_heads=1, head_dim=8, context_limit=7),
            "context": 7,
        },
        {"geometry": mv.Geometry(sliding_window=LIMIT), "precision": "Q8_0"},
    ],
)
def test_any_bill_can_be_drawn(asked: dict[str, Any]) -> None:
    picture = mv.draw_bill(**asked)
    assert picture.png.startswith(PNG)
    assert picture.text.startswith("4 slots" if "slots" in asked else "1 slot of")


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"context": 0}, r"^context is 0; .*from 1 to 131072$"),
        ({"context": LIMIT + 1}, "^context is 131073"),
        ({"tokens": 0}, r"^tokens is 0; .*from 1 to 131072$"),
        ({"context": 64, "tokens": 65}, r"^tokens is 65; .*from 1 to 64$"),
        ({"tokens": 2.0}, "^tokens is 2.0"),
        ({"slots": 0}, "^slots is 0"),
        ({"precision": "Q4_0"}, "^precision is 'Q4_0'; give one of f16, Q8_0, f32$"),
        (
            {"geometry": mv.Geometry(n_kv_heads=1, head_dim=8), "precision": "Q8_0"},
            "8 elements, .*multiple of 32",
        ),
    ],
)
def test_what_is_no_bill(asked: dict[str, Any], refusal: str) -> None:
    with pytest.raises(mv.InputError, match=refusal):
        mv.draw_bill(**asked)
    with pytest.raises(mv.InputError, match=refusal):
        mv.Bill(**asked)


@pytest.mark.usefixtures("_drawn_once")
class TestBill:
    def test_it_starts_as_asked(self) -> None:
        check_shows(mv.Bill(), price())
        check_shows(mv.Bill(context=130_814, tokens=3_001, slots=3), price(3_001, 130_814, 3))
        check_shows(mv.Bill(slots=40), price(slots=40))

    @pytest.mark.parametrize(
        ("name", "value", "live"),
        [
            ("context", 32_768.0, 81_788_928 + 32_768 * 13_312),
            ("live tokens", 2_049.0, 81_788_928 + 2_049 * 13_312),
            ("slots", 4, 7_306_477_568),
            ("window", 65_536.0, 39 * 65_536 * 1_024 + LIMIT * 13_312),
            ("layers", 4, (3 * 2_048 + LIMIT) * 1_024),
            ("KV heads", 5, 1_826_619_392 // 2 * 5),
            ("precision", "Q8_0", 970_391_552),
        ],
    )
    def test_every_factor_has_a_control(self, name: str, value: Any, live: int) -> None:
        bill = mv.Bill()
        assert len(controls(bill)) == 7
        controls(bill)[name].value = value
        assert sum(bill.price.live()) == live
        check_shows(bill, bill.price)

    def test_live_tokens_end_at_the_context(self) -> None:
        bill = mv.Bill()
        controls(bill)["context"].value = 1_000.0
        check_shows(bill, price(1_000, 1_000))

    @pytest.mark.parametrize("tokens", [1, 2_047, 130_814, LIMIT - 1, LIMIT])
    def test_sliders_of_tokens_are_exact(self, tokens: int) -> None:
        assert mv.Bill(tokens=tokens).price.tokens == tokens

    def test_three_forms(self) -> None:
        data, about = mv.Bill(tokens=5)._repr_mimebundle_()
        assert VIEW in data
        assert data["text/plain"] == price(5).text()
        assert base64.b64decode(data["image/png"]) == drawn_once(price(5)).png
        assert about == {"image/png": {"alt": price(5).text()}}

    def test_an_error_is_shown(self) -> None:
        bill = mv.Bill(mv.Geometry(head_dim=8, n_kv_heads=4))
        controls(bill)["precision"].value = "Q8_0"
        assert 'role="status"' in said(bill)
        controls(bill)["KV heads"].value = 3
        assert 'role="alert"' in said(bill)
        assert "24 elements" in said(bill)
        controls(bill)["precision"].value = "f16"
        assert 'role="status"' in said(bill)
