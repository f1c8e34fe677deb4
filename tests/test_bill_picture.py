from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muser_viz as mv
from muser_viz.bill_picture import Price, fixed, sized

PNG = b"\x89PNG\r\n\x1a\n"
LIMIT = 131_072


def price(tokens: int = LIMIT, context: int = LIMIT, slots: int = 1, precision: str = "f16") -> Price:
    return Price(mv.MUSE_GLIMMER, context, slots, tokens, precision)


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
        "full, allocated: 1 x 13 x 131,072 x 1,024 = 1,744,830,464 B = 1.625 GiB = 1.745 GB",
        "both, allocated: 81,788,928 + 1,744,830,464 = 1,826,619,392 B = 1.701 GiB = 1.827 GB",
        "the full layers hold 32.81% of the live bytes, 95.52% of the allocated",
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


@pytest.mark.parametrize("precision", ["f16", "Q8_0", "f32"])
@pytest.mark.parametrize("tokens", [1, 40, 3_000, LIMIT])
def test_each_term_is_its_multiplication(precision: str, tokens: int) -> None:
    paid = price(tokens, slots=3, precision=precision)
    for name, product, size in paid.terms():
        python = product.replace(",", "").replace(" x ", " * ").replace(" / ", " // ")
        assert eval(python) == size, name
    sizes = {name: size for name, _, size in paid.terms()}
    assert (sizes["sliding, live"], sizes["full, live"]) == paid.live()
    assert (sizes["sliding, allocated"], sizes["full, allocated"]) == paid.allocated
    assert sizes["one K row, or V row"] == paid.row


def test_f16_terms_are_those_of_the_footprint() -> None:
    wanted = {name: size for name, _, size in mv.footprint(context=9_000, slots=2).terms()}
    found = {name: size for name, _, size in price(9_000, 9_000, 2).terms()}
    assert {name: found[name] for name in wanted} == wanted


def test_the_sentence() -> None:
    assert price(slots=4).sentence() == (
        "4 slots of max_context 131,072, tokens 131,072; 39 sliding layers of window 2,048 and 13 full; "
        "2 KV heads x 128, f16: live 7,306,477,568 B (sliding 327,155,712, full 6,979,321,856), "
        "allocated 7,306,477,568 B (sliding 327,155,712, full 6,979,321,856); "
        "the full layers hold 95.52% of the live bytes, 95.52% of the allocated"
    )


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1,000 B = 1 kB"),
        (53_248, "52 KiB = 53.248 kB"),
        (1_744_830_464, "1.625 GiB = 1.745 GB"),
        (1_826_619_392, "1.701 GiB = 1.827 GB"),
        (2**73, "8,388,608 PiB = 9,444,732.966 PB"),
    ],
)
def test_gib_and_gb_are_two_units(size: int, said: str) -> None:
    assert sized(size) == said


@pytest.mark.parametrize(
    ("part", "whole", "said"), [(1, 8, "0.13"), (1, 3, "0.33"), (2, 3, "0.67"), (12_345, 10, "1,234.50")]
)
def test_fixed_is_exact(part: int, whole: int, said: str) -> None:
    assert fixed(part, whole, 2) == said
