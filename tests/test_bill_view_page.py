from __future__ import annotations

import random
from typing import Any

import pytest
from page_checks import (
    check_full_and_on,
    check_keys,
    check_theme,
    check_there,
    check_width,
    notebook,
    says,
    type_in,
    view,
)
from playwright.sync_api import Locator, Page, expect

import muser_viz as mv
from muser_viz.bill_picture import PRECISIONS, Price, sized
from muser_viz.views.view import front

LIMIT = 131_072
START = "import muser_viz as mv\nbill = mv.Bill(context=32_768, tokens=6_144, slots=4)\nbill"
SMALL = "mv.Bill(mv.Geometry(n_layers=3, full_every=2, n_kv_heads=1, head_dim=8, context_limit=7), context=7)"
TIMES = "\u00d7"
FIELDS = ("context", "live tokens", "slots", "window", "layers", "KV heads")

opened = notebook("bills.ipynb", START, SMALL, "bill", views=3)


def price(
    tokens: int = LIMIT, context: int = LIMIT, slots: int = 1, precision: str = "f16", **fields: int
) -> Price:
    return Price(mv.Geometry(**fields), context, slots, tokens, precision)


def check_shows(shown: Locator, wanted: Price) -> None:
    """The sentence and every term are those of the package."""
    assert says(shown) == wanted.sentence()
    said = shown.evaluate(
        """(v) => [...v.querySelectorAll('.mv-bill-terms tr')].map((line) =>
          [...line.querySelectorAll('th, td')].map((cell) =>
            [cell.firstChild.textContent, cell.querySelector('small')?.textContent ?? '']))"""
    )
    *terms, share = said
    for ((name, product), (size, units)), (wanted_name, wanted_product, paid) in zip(
        terms, wanted.terms(), strict=True
    ):
        assert (name, product.replace(TIMES, "x")) == (wanted_name, wanted_product)
        assert size == f"{paid:,} B"
        assert units == (sized(paid) if paid >= 1000 else "")
    live, allocated = wanted.shares()
    assert share[1] == [f"{live} of live", f"{allocated} of allocated"]


SETTINGS: tuple[tuple[dict[str, Any], Price], ...] = (
    ({"context": LIMIT}, price(6_144, slots=4)),
    ({"context": LIMIT, "live tokens": 130_814, "slots": 1}, price(130_814)),
    ({"slots": 16, "window": 4_096, "layers": 9}, price(6_144, 32_768, 16, sliding_window=4_096, n_layers=9)),
    ({"context": 7, "slots": 3}, price(7, 7, 3)),
    (
        {"KV heads": 5, "window": 100_000},
        price(6_144, 32_768, 4, n_kv_heads=5, n_query_heads=5, sliding_window=100_000),
    ),
    ({"layers": 3, "slots": 1_000_003}, price(6_144, 32_768, 1_000_003, n_layers=3)),
)


@pytest.mark.parametrize(("typed", "wanted"), SETTINGS)
def test_typed_factors(page: Page, typed: dict[str, Any], wanted: Price) -> None:
    shown = view(page)
    for name, value in typed.items():
        type_in(shown, name, value)
    check_shows(shown, wanted)
    for precision in PRECISIONS:
        shown.get_by_role("button", name=precision, exact=True).click()
        g = wanted.geometry
        check_shows(shown, Price(g, wanted.context, wanted.slots, wanted.tokens, precision))
    check_shows(view(page, 2), Price(wanted.geometry, wanted.context, wanted.slots, wanted.tokens, "f32"))


def test_many_settings_are_equal_to_the_package_s(page: Page) -> None:
    draw = random.Random(15)
    asked: list[tuple[dict[str, Any], dict[str, Any], Price]] = []
    for _ in range(300):
        limit = draw.choice([7, 1_000, LIMIT, 2**32])
        context = draw.randint(1, limit)
        tokens = draw.randint(1, context)
        f: dict[str, Any] = {
            "context": context,
            "tokens": tokens,
            "slots": draw.choice([1, 4, draw.randint(1, 2**32)]),
            "window": draw.choice([2_048, draw.randint(1, 2 * limit)]),
            "layers": draw.randint(1, 200),
            "heads": draw.randint(1, 64),
            "precision": draw.choice([*PRECISIONS]),
        }
        geometry = mv.Geometry(
            f["layers"],
            f["window"],
            f["heads"],
            draw.choice([32, 128]),
            limit,
            f["heads"],
            draw.randint(1, 9),
        )
        wanted = Price(geometry, context, f["slots"], tokens, f["precision"])
        shape = {
            "head_dim": geometry.head_dim,
            "full_every": geometry.full_every,
            "limit": limit,
            "least_rows": 32,
        }
        asked.append((f, shape | {"precisions": PRECISIONS}, wanted))
    found = page.evaluate(
        """async ([code, settings]) => {
          const own = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
          const { bill, sized } = await import(own);
          return settings.map(([f, shape]) => {
            const { terms, sentence, even } = bill(f, shape);
            const said = terms.map(([, name, how, bytes]) => [name, how, String(bytes), sized(bytes)]);
            return [said, sentence, even];
          });
        }""",
        [front("bill_view")[0] + "\nexport { bill, sized };", [[f, shape] for f, shape, _ in asked]],
    )
    for (terms, sentence, even), (_, _, wanted) in zip(found, asked, strict=True):
        assert [(n, p.replace(TIMES, "x"), int(b), u) for n, p, b, u in terms] == [
            (name, product, paid, sized(paid)) for name, product, paid in wanted.terms()
        ]
        assert sentence == wanted.sentence()
        assert even == wanted.even
    assert max(sum(wanted.allocated) for *_, wanted in asked) > 2**60


def test_page_keys_tell_the_chapter_s_settings(page: Page) -> None:
    shown = view(page)
    shown.focus()
    told = (
        ("one layer, one token", "1,024 B", price(1, n_layers=1)),
        ("all 52 layers, one token", "53,248 B", price(1)),
        ("the rings full, at 2,048 tokens", "81,788,928 B = 78 MiB", price(2_048)),
        ("the full planes at 131,072 tokens", "1,744,830,464 B = 1.625 GiB = 1.745 GB", price()),
        ("one slot of 131,072", "1,826,619,392 B = 1.701 GiB = 1.827 GB", price()),
        ("four slots of 131,072", "7,306,477,568 B = 6.805 GiB = 7.306 GB", price(slots=4)),
        ("one slot of 32,768", "517,996,544 B", price(32_768, 32_768)),
    )
    for index, (name, size, wanted) in enumerate(told):
        page.keyboard.press("PageDown")
        story = shown.locator(".mv-bill-story").inner_text()
        assert story.startswith(f"{index + 1} of 7: {name}. ")
        assert size in story
        assert size.split(" = ")[0] in shown.locator(".mv-bill-meant").inner_text()
        check_shows(shown, wanted)
    page.keyboard.press("PageDown")
    assert shown.get_attribute("data-chosen") == "6"
    check_keys(
        page,
        lambda: shown.get_attribute("data-chosen"),
        ("PageUp", "5"),
        ("Home", "0"),
        ("End", "6"),
        ("ArrowLeft", "5"),
        ("ArrowRight", "6"),
    )
    shown.get_by_role("combobox", name="the chapter's settings").select_option(
        label="6. four slots of 131,072"
    )
    check_shows(shown, price(slots=4))
    type_in(shown, "slots", 5)
    expect(shown.locator(".mv-bill-story")).to_be_hidden()
    shown.focus()
    page.keyboard.press("r")
    check_shows(shown, price(6_144, 32_768, 4))


def test_arrows_on_sliders(page: Page) -> None:
    shown = view(page)
    shown.get_by_role("slider", name="live tokens").focus()
    for key, tokens in (
        ("ArrowRight", 8_192),
        ("ArrowUp", 16_384),
        ("ArrowLeft", 8_192),
        ("ArrowDown", 4_096),
    ):
        page.keyboard.press(key)
        check_shows(shown, price(tokens, 32_768, 4))
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    check_shows(shown, price(32_768, 32_768, 4))
    shown.get_by_role("slider", name="slots").focus()
    page.keyboard.press("ArrowLeft")
    check_shows(shown, price(32_768, 32_768, 3))
    page.keyboard.press("PageDown")
    assert shown.get_attribute("data-chosen") == "0"


def test_live_tokens_end_at_the_context_and_come_back(page: Page) -> None:
    shown = view(page)
    type_in(shown, "context", 1_000)
    check_shows(shown, price(1_000, 1_000, 4))
    type_in(shown, "context", 30_000)
    check_shows(shown, price(6_144, 30_000, 4))


@pytest.mark.parametrize(
    ("name", "typed", "said"),
    [
        ("context", "131073", "context is 131073; give a whole number from 1 to 131,072"),
        ("live tokens", "32769", "live tokens is 32769; give a whole number from 1 to 32,768"),
        ("slots", "0", "slots is 0; give a whole number from 1 to 4,294,967,296"),
        ("layers", "", "layers is no number; give a whole number from 1 to"),
        ("window", "1.5", "window is 1.5; give a whole number"),
    ],
)
def test_what_is_no_bill_is_said_and_changes_nothing(page: Page, name: str, typed: str, said: str) -> None:
    shown = view(page)
    type_in(shown, name, typed)
    expect(shown.get_by_role("alert")).to_contain_text(said)
    check_shows(shown, price(6_144, 32_768, 4))
    assert shown.get_by_role("spinbutton", name=name).input_value() != typed


def test_a_row_of_no_whole_blocks(page: Page) -> None:
    shown = view(page, 1)
    said = says(shown)
    shown.get_by_role("button", name="Q8_0").click()
    expect(shown.get_by_role("alert")).to_have_text(
        "a row has 8 elements, which is no whole number of Q8_0 blocks; "
        "give KV heads x head dim as a multiple of 32"
    )
    assert says(shown) == said
    expect(shown.get_by_role("button", name="f16")).to_have_attribute("aria-pressed", "true")
    shown.focus()
    for _ in range(6):
        page.keyboard.press("PageDown")
    assert "6 of 6: four slots of 7" in shown.locator(".mv-bill-story").inner_text()


def test_a_click_on_the_curve_sets_the_live_tokens(page: Page) -> None:
    shown = view(page)
    chart = shown.locator(".mv-bill-drawn > svg")
    box = chart.bounding_box()
    assert box is not None
    chart.click(position={"x": box["width"] - 4, "y": box["height"] / 2})
    assert shown.get_by_role("spinbutton", name="live tokens").input_value() == "32768"


def test_the_accessibility_tree(page: Page) -> None:
    group = page.get_by_role("group", name="What the planes cost in bytes, factor by factor").first
    check_there(group, "slider", *FIELDS)
    check_there(group, "spinbutton", *FIELDS)
    expect(group.get_by_role("table", name="Every term")).to_be_visible()
    expect(group.get_by_role("group", name="precision")).to_be_visible()
    expect(group.get_by_role("slider", name="live tokens")).to_have_attribute("aria-valuetext", "6,144")


def test_full_screen_and_theme(page: Page) -> None:
    check_full_and_on(page, "End")
    check_theme(
        page, view(page), "(v) => getComputedStyle(v.querySelector('.mv-bill-line.mv-bill-full')).stroke"
    )


@pytest.mark.parametrize("width", [420, 900, 1_050, 1_290])
def test_all_is_in_its_place_at_any_width(page: Page, width: int) -> None:
    check_width(page, width, ".mv-bill-factor")
