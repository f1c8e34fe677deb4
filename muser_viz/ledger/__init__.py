"""The chapter's claims, each with what was derived by running something, and a verdict."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from muser_viz.errors import InputError
from muser_viz.geometry import MUSE_GLIMMER, Geometry

Verdict = Literal["holds", "erratum", "holds with care", "not checkable here"]
VERDICTS: tuple[Verdict, ...] = ("holds", "erratum", "holds with care", "not checkable here")


@dataclass(frozen=True)
class Claim:
    """One checkable statement of the chapter.

    ``says`` is our wording; ``printed`` what the chapter prints; ``derive`` gives
    what comes out for a geometry, ``by`` names what was run; ``on`` the fields of
    the geometry that it depends on; ``note`` the care, the right value's reason,
    or what would check it. ``tokens`` are the numbers of its section that it covers.
    """

    id: str
    section: str
    says: str
    printed: str
    derive: Callable[[Geometry], str]
    by: str
    verdict: Verdict
    on: tuple[str, ...] = ()
    note: str = ""
    tokens: tuple[str, ...] = ()

    @property
    def derived(self) -> str:
        """What comes out for the chapter's geometry."""
        return self.derive(MUSE_GLIMMER)


class Claims(tuple[Claim, ...]):
    """Claims as a table: text, and HTML in a notebook."""

    def __repr__(self) -> str:
        lines = []
        for claim in self:
            lines.append(f"{claim.id}  §{claim.section}  {claim.verdict}")
            lines += textwrap.wrap(claim.says, 96, initial_indent="    ", subsequent_indent="    ")
            lines.append(f"    printed {claim.printed}; derived {claim.derived} by {claim.by}")
            if claim.note:
                lines += textwrap.wrap(claim.note, 96, initial_indent="    ", subsequent_indent="    ")
        counts = [
            f"{sum(c.verdict == v for c in self)} {v}" for v in VERDICTS if any(c.verdict == v for c in self)
        ]
        lines.append(f"{len(self)} claims: {', '.join(counts)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(
            f"<th style='text-align:left'>{name}</th>"
            for name in ("claim", "§", "statement", "printed", "derived", "by", "verdict", "note")
        )
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td style='text-align:left'>{html.escape(cell)}</td>"
                for cell in (c.id, c.section, c.says, c.printed, c.derived, c.by, c.verdict, c.note)
            )
            + "</tr>"
            for c in self
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


@cache
def _all() -> Claims:
    from muser_viz.ledger.chapter import CHAPTER

    return Claims(CHAPTER)


def claims(section: str | None = None, verdict: Verdict | None = None) -> Claims:
    """The ledger, or the claims of one section ("15.5") or verdict; InputError for one that has none."""
    found = Claims(
        claim for claim in _all() if section in (None, claim.section) and verdict in (None, claim.verdict)
    )
    if not found:
        sections = sorted({claim.section for claim in _all()}, key=lambda s: int(s.split(".")[1]))
        raise InputError(
            f"section {section!r} with verdict {verdict!r} has no claims; "
            f"sections are {', '.join(sections)}, verdicts {', '.join(VERDICTS)}"
        )
    return found
