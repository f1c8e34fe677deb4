from __future__ import annotations

import re
from dataclasses import replace

import pytest
from conftest import cases

import muser_viz as mv
from muser_viz.ledger import VERDICTS, Claim

NUMBERS: dict[str, list[str]] = cases("chapter-numbers.json")
CHANGED = {"n_layers": 48, "sliding_window": 1024, "n_kv_heads": 4, "head_dim": 64, "context_limit": 65_536}

# Numbers that the chapter prints and that state nothing of a store: reason and numbers, section by section.
CHAPTER, FIGURE, LINE = "another chapter", "a section or figure of this one", "a line of a source file"
DATE, ITEM = "a date or a document's name", "an item's number"
DOCUMENT = "a section of another document"
REASONS = {
    "15.1": {CHAPTER: "14 16", LINE: "84 93 131"},
    "15.2": {FIGURE: "15.3", LINE: "182 1344", DOCUMENT: "3", DATE: "2026 08 20"},
    "15.3": {FIGURE: "15.1 15.6", LINE: "503 511 1224 1228"},
    "15.4": {FIGURE: "15.1 15.5", LINE: "635 655 979 1203"},
    "15.5": {FIGURE: "15.2 15.4", LINE: "15 17 117 121 263 286 314 5643 5661 5667", ITEM: "3"},
    "15.6": {CHAPTER: "25 38", LINE: "376 384 407"},
    "15.7": {CHAPTER: "22", DOCUMENT: "1 6", "contexts of another chapter's tables": "32 131"},
    "15.8": {
        CHAPTER: "13 14 24 31",
        FIGURE: "15.7",
        LINE: "11 183 184 534 543 5669 5670",
        DOCUMENT: "6",
    },
    "15.9": {CHAPTER: "36", DATE: "20260815"},
    "15.10": {CHAPTER: "16"},
}


def claimed_as(id: str) -> str:
    """What was derived for the claim of this id."""
    return next(claim.derived for claim in mv.claims() if claim.id == id)


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


@pytest.mark.parametrize("section", NUMBERS)
def test_every_number_of_a_section_is_claimed_or_excused(section: str) -> None:
    claimed = {token for claim in mv.claims() if claim.section == section for token in claim.tokens}
    excused = {number for numbers in REASONS[section].values() for number in numbers.split()}
    assert not claimed & excused
    assert claimed | excused == set(NUMBERS[section])


def test_no_claim_is_merely_argued() -> None:
    for claim in mv.claims():
        assert not re.search("argued|counted in", claim.by), claim.id


def test_what_the_claims_that_need_care_show() -> None:
    shown = {claim.id: claim.derived for claim in mv.claims(verdict="holds with care")}
    assert shown["4.9"] == "2, and the fused read"
    assert shown["5.5"] == "in 40 of 41 states; after token 40 len is 40 of 40 rows"
    assert shown["5.7"] == "live token 10 is dropped, token 5 is kept after it has left the window"
    assert shown["6.2"] == "at 63 (flat scores), 0 (peaked ones), 0 (exact sums) of 63 other rotations"
    assert shown["6.7"].startswith("origin_logical; ")
    assert shown["8.6"].startswith("the full planes: rows final from chunk 1 of 256 on; ")
    assert shown["8.7"] == "4 cells; planes in sliding RoPE token-major, full NoPE head-major"
    assert shown["9.6"] == "staging: would change; the split, fused into one: would not change"


def test_lesson_02_and_the_ledger_take_the_same_ring() -> None:
    question = mv.predict("modulo overwrite").question
    assert f"live token {question.answer}; the origins say row 0" in claimed_as("2.7")
    assert f"token {question.answer} is dropped" in claimed_as("5.7")


def test_eleven_are_statements_and_the_listing_is_not_carried() -> None:
    (claim,) = (claim for claim in mv.claims("15.5") if claim.id == "5.9")
    assert claim.derived.startswith("11 statements: ")
    assert "the rest by hand" in claim.by
    assert "not carried" in claim.by


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
