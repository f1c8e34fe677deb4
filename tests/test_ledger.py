from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import cases

import muser_viz as mv
from muser_viz.ledger import VERDICTS, Claim

NUMBERS: dict[str, list[str]] = cases("chapter-numbers.json")
CHANGED = {"n_layers": 48, "sliding_window": 1024, "n_kv_heads": 4, "head_dim": 64, "context_limit": 65_536}

# Numbers that the chapter prints and that state nothing of a store.
REASONS = {
    "a chapter": "9 13 14 15 16 22 24 25 31 36 38",
    "a section or figure": "15.1 15.2 15.3 15.4 15.5 15.6 15.7 15.8 15.9 15.10",
    "a line of a source file": "131 84 93 182 1344 503 511 1224 1228 979 635 655 1203 263 117 121 15 17"
    " 286 314 5643 5661 5667 376 384 407 183 184 11 16 5669 5670 534 543",
    "a date or a receipt's name": "2026 08 20 20260820 130815 20260815",
    "a section of another document": "1 3 6",
    "a table of another chapter": "22 32 131",
    "a kernel's or an item's number": "0 1 2 3",
}
EXCUSED = {number for numbers in REASONS.values() for number in numbers.split()}


def test_there_are_enough_claims_with_ids_of_their_own() -> None:
    every = mv.claims()
    assert len(every) >= 70
    assert len({claim.id for claim in every}) == len(every)
    assert {claim.verdict for claim in every} == set(VERDICTS)


@pytest.mark.parametrize("claim", mv.claims(), ids=lambda claim: claim.id)
def test_the_verdict_is_what_was_derived(claim: Claim) -> None:
    if claim.verdict == "holds":
        assert claim.derived == claim.printed
    elif claim.verdict == "not checkable here":
        assert (claim.derived, claim.by) == ("nothing", "nothing")
        assert claim.note
    else:
        assert claim.derived != claim.printed
        assert claim.note


@pytest.mark.parametrize("claim", mv.claims(), ids=lambda claim: claim.id)
def test_another_geometry_changes_what_depends_on_it_and_nothing_else(claim: Claim) -> None:
    for field, value in CHANGED.items():
        other = claim.derive(replace(mv.MUSE_GLIMMER, **{field: value}))
        assert (other != claim.derived) == (field in claim.on), field


def test_every_number_of_the_chapter_is_claimed_or_excused() -> None:
    claimed = {(claim.section, token) for claim in mv.claims() for token in claim.tokens}
    printed = {(section, token) for section, tokens in NUMBERS.items() for token in tokens}
    assert claimed <= printed
    missing = {(section, token) for section, token in printed - claimed if token not in EXCUSED}
    assert not missing


def test_all_errata_are_found() -> None:
    found = {claim.id: claim.derived for claim in mv.claims(verdict="erratum")}
    assert found["7.8"] == "1.625 GiB"
    assert found["8.1"] == "95.51 %"
    assert found["4.1"] == "2,049 -> 2,048, 2,051 -> 2,052"
    assert found["8.8"] == "1,024"
    assert found["8.9"] == "0.531"
    assert "in bounds" in found["2.7"]
    assert "5.9" in found
    assert len(found) == 7


def test_a_section_is_a_table() -> None:
    table = mv.claims("15.5")
    assert {claim.section for claim in table} == {"15.5"}
    assert repr(table).splitlines()[-1].startswith(f"{len(table)} claims: ")
    bundle = table._repr_mimebundle_()
    assert bundle["text/html"].count("<tr>") == len(table) + 1
    with pytest.raises(mv.InputError, match="sections are 15.1"):
        mv.claims("15.11")
