"""What a chunk takes from its own queries, and what staging gives back, query by query (§15.9)."""

from __future__ import annotations

from typing import Any

import traitlets

from muser_viz.checks import POSITION_LIMIT, span, whole
from muser_viz.errors import InputError
from muser_viz.pictures import Picture
from muser_viz.staging import draw_staging, staging_sentence
from muser_viz.views.view import View, front

LONGEST = 65_536
"""Tokens of the longest chunk that is shown, and rows of the largest ring."""
SETTINGS = ("position", "chunk", "window", "query", "staged")


class Staging(View):
    """A chunk over a ring: what each of its queries sees, has lost, or finds staged (§15.9).

    The ring of ``window`` rows took the tokens before ``position``; ``chunk`` tokens
    follow. ``query``: the chunk's query that is shown, from 0 on. ``staged``: whether
    its queries read the staged rows, or the ring that took the whole chunk first.

    In a page without widgets it is the picture of ``draw_staging``; as text, its
    lines. InputError for a query outside the chunk, a chunk or window outside
    1 to 65,536, and positions past 2**32.
    """

    _esm, _css = front("staging_view")

    position = traitlets.Int(0).tag(sync=True, state=True)
    chunk = traitlets.Int(1).tag(sync=True, state=True)
    window = traitlets.Int(1).tag(sync=True, state=True)
    query = traitlets.Int(0).tag(sync=True, state=True)
    staged = traitlets.Bool(False).tag(sync=True, state=True)
    limits = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        position: int = 2048,
        chunk: int = 512,
        window: int = 2048,
        query: int = 0,
        staged: bool = False,
    ) -> None:
        super().__init__(
            limits={"longest": LONGEST, "positions": POSITION_LIMIT},
            **_checked(position, chunk, window, query, staged),
        )

    def show(self, **settings: Any) -> None:
        """Set position, chunk, window, query or staged; InputError for another name, and as at the start."""
        unknown = [name for name in settings if name not in SETTINGS]
        if unknown:
            raise InputError(f"{', '.join(unknown)} is no setting; give {', '.join(SETTINGS)}")
        self.put(**_checked(**{name: getattr(self, name) for name in SETTINGS} | settings))

    def sentence(self) -> str:
        """What the query that Python set finds."""
        return staging_sentence(self.position, self.chunk, self.window, self.query, self.staged)

    def picture(self) -> Picture:
        """The state that Python set, as a picture."""
        return draw_staging(self.position, self.chunk, self.window, self.query, self.staged)


def _checked(position: int, chunk: int, window: int, query: int, staged: bool) -> dict[str, Any]:
    chunk = whole("chunk", chunk, 1, LONGEST)
    position, chunk = span(position, chunk)
    if not isinstance(staged, bool):
        raise InputError(f"staged is {staged!r}; give True or False")
    return {
        "position": position,
        "chunk": chunk,
        "window": whole("window", window, 1, LONGEST),
        "query": whole("query", query, 0, chunk - 1),
        "staged": staged,
    }
