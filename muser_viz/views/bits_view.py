"""Two arrays word by word, bit by bit, in the browser (§15.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import traitlets

from muser_viz.bits import differing, words
from muser_viz.checks import whole
from muser_viz.errors import InputError
from muser_viz.pictures import Picture, draw_bits
from muser_viz.views.view import View
from muser_viz.views.words import front_with_words


class BitsView(View):
    """Where two arrays differ, and in which bits: sign, exponent, mantissa (§15.6).

    ``a``, ``b``: f16 or f32, one dtype and shape, one word or more; shown flat.
    ``names``: what they are called. ``index``: the word shown first, of the flat
    arrays (left out: the first that differs). Words that differ are those with
    other bits: -0 and +0 differ, equal NaNs do not.

    In a page without widgets it is the picture of ``draw_bits``; as text, its text.
    InputError for unequal shapes or dtypes, other dtypes, empty arrays, names
    that are not two texts, and an index outside the arrays.
    """

    _esm, _css = front_with_words("bits_view")

    a = traitlets.Bytes(b"").tag(sync=True)  # the words as they lie, little-endian
    b = traitlets.Bytes(b"").tag(sync=True)
    width = traitlets.Int(32).tag(sync=True)  # bits of a word: 16 or 32
    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    index = traitlets.Int(0).tag(sync=True, state=True)

    def __init__(self, a: Any, b: Any, names: tuple[str, str] = ("a", "b"), index: int | None = None) -> None:
        mask = differing(a, b).ravel()
        if mask.size == 0:
            raise InputError("two empty arrays were given; give at least one word each")
        called = list(names) if isinstance(names, (tuple, list)) else []
        if len(called) != 2 or not all(isinstance(name, str) for name in called):
            raise InputError(f"names is {names!r}; give two texts, one an array")
        self._last = mask.size - 1
        first = int(np.argmax(mask)) if index is None else whole("index", index, 0, self._last)
        self._pair = tuple(np.array(each).ravel() for each in (a, b))
        raw = [words(each).astype(f"<u{each.itemsize}") for each in self._pair]
        super().__init__(
            a=raw[0].tobytes(),
            b=raw[1].tobytes(),
            width=8 * raw[0].itemsize,
            names=called,
            index=first,
        )

    def show(self, index: int) -> None:
        """Show another word; InputError outside the arrays."""
        self.put(index=whole("index", index, 0, self._last))

    def picture(self) -> Picture:
        """The strip, and the word that Python set with the differing ones after it."""
        return draw_bits(
            self._pair[0], self._pair[1], names=(self.names[0], self.names[1]), shown=4, index=self.index
        )
