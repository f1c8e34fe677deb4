"""Every rotation of a ring against its own, in the browser (§15.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import traitlets

from muser_viz.checks import whole
from muser_viz.errors import InputError
from muser_viz.pictures import Picture, draw_sweep
from muser_viz.sweeps import Measure, Sweep
from muser_viz.views.view import View
from muser_viz.views.words import front_with_words


class RotationSweep(View):
    """All rotations of a ring: how many words differ from the own one's, by how much, in which bits (§15.6).

    ``swept``: f32, ``(rotations, ...)``, as ``sweep_rotations`` gives it; ``own``:
    the ring's own rotation, compared with. ``picked``: the rotation shown first
    (left out: the one with the largest difference). ``fold``: 8, 16, 32, 64 or
    128 rotations a line in the map of them all, where a reader's period shows as
    columns; at most half the rotations (left out: 32, or the largest that goes;
    0 where none does: no map). ``measure``: what the map shows, "words", "size"
    or "ulp".

    20 bytes a rotation go to the browser: of each rotation's words only the one
    with the largest difference. In a page without widgets it is the picture of
    ``draw_sweep``; as text, its text. InputError where ``own`` or ``picked`` is no
    row, for another fold, measure, shape or dtype, and for what is not finite.
    """

    _esm, _css = front_with_words("rotation_sweep")

    rotations = traitlets.Bytes(b"").tag(sync=True)
    # uint32, little-endian, five a rotation: words that differ, largest ULP distance,
    # and of the word with the largest difference its index, its bits in the own rotation and in this one
    own = traitlets.Int(0).tag(sync=True)
    width = traitlets.Int(0).tag(sync=True)  # words a rotation
    picked = traitlets.Int(0).tag(sync=True, state=True)
    fold = traitlets.Int(0).tag(sync=True, state=True)
    measure = traitlets.Unicode("words").tag(sync=True, state=True)

    def __init__(
        self,
        swept: Any,
        own: int,
        picked: int | None = None,
        fold: int | None = None,
        measure: Measure = "words",
    ) -> None:
        sweep = Sweep.of(swept, own)
        sweep.values(measure)  # refuses one that is none
        folds = sweep.folds
        if fold is None:
            fold = 0 if not folds else 32 if 32 in folds else folds[-1]
        elif fold not in folds:
            can = ", ".join(map(str, folds))
            raise InputError(
                f"fold is {fold!r}; {len(sweep):,} rotations fold by {can}"
                if folds
                else f"fold is {fold!r}; {len(sweep):,} rotations are too few to fold: leave it out"
            )
        self.sweep = sweep
        self._swept = np.array(swept)
        columns = (
            sweep.counts,
            sweep.ulps,
            sweep.index,
            sweep.own_words.view(np.uint32),
            sweep.other_words.view(np.uint32),
        )
        super().__init__(
            rotations=np.stack(columns, axis=1).astype("<u4").tobytes(),
            own=sweep.own,
            width=sweep.width,
            picked=sweep.furthest if picked is None else whole("picked", picked, 0, len(sweep) - 1),
            fold=fold,
            measure=measure,
        )

    def show(self, picked: int) -> None:
        """Pick another rotation; InputError where there is none."""
        self.put(picked=whole("picked", picked, 0, len(self.sweep) - 1))

    def picture(self) -> Picture:
        """All rotations, and the picked one that Python set."""
        return draw_sweep(self._swept, self.own, self.picked, self.fold or None, self.measure)  # type: ignore[arg-type]
