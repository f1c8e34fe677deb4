"""A sweep of rotations, compared with the ring's own: how many words differ, and by how much (§15.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from muser_viz.bits import differing, ulp_distance
from muser_viz.checks import whole
from muser_viz.errors import InputError
from muser_viz.word_pairs import pair_text

Measure = Literal["words", "size", "ulp"]
MEASURES: dict[str, str] = {
    "words": "words that differ",
    "size": "largest difference",
    "ulp": "largest ULP distance",
}
FOLDS = (8, 16, 32, 64, 128)
_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Sweep:
    """What each rotation's output has in other bits than the own rotation's.

    Arrays of one value a rotation: ``counts`` of words (int64), ``sizes`` of the
    largest difference (f64), ``ulps`` of the largest ULP distance (int64); and of
    the word with the largest difference its ``index`` (int64), ``own_words`` and
    ``other_words`` (f32). ``width``: words a rotation.
    """

    own: int
    width: int
    counts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.float64]
    ulps: npt.NDArray[np.int64]
    index: npt.NDArray[np.int64]
    own_words: npt.NDArray[np.float32]
    other_words: npt.NDArray[np.float32]

    @classmethod
    def of(cls, swept: Any, own: object) -> Sweep:
        """Compare ``swept``: f32, ``(rotations, ...)``, with its row ``own``.

        InputError where it is no row, and for another shape or dtype, or what is not finite.
        """
        outputs = np.asarray(swept)
        if outputs.dtype != np.float32 or outputs.ndim < 2 or len(outputs) < 2 or outputs.size == 0:
            raise InputError(
                f"swept is {outputs.dtype} of shape {outputs.shape}; "
                "give float32 of (rotations, ...) with two rotations or more"
            )
        if not np.isfinite(outputs).all():
            raise InputError(
                "swept holds infinities or NaNs; sizes of differences are drawn of finite numbers"
            )
        base = whole("own", own, 0, len(outputs) - 1)
        flat = outputs.reshape(len(outputs), -1)
        lines = max(1, _AT_ONCE // flat.shape[1])
        parts = [_compared(flat[first : first + lines], flat[base]) for first in range(0, len(flat), lines)]
        counts, sizes, ulps, index = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(
            base,
            flat.shape[1],
            counts,
            sizes,
            ulps,
            index,
            flat[base][index],
            flat[np.arange(len(flat)), index],
        )

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def others(self) -> npt.NDArray[np.int64]:
        """All rotations but the own one."""
        return np.delete(np.arange(len(self)), self.own)

    @property
    def furthest(self) -> int:
        """The rotation with the largest difference; the own one where there is none."""
        return int(np.argmax(self.sizes)) if self.sizes.any() else self.own

    @property
    def folds(self) -> tuple[int, ...]:
        """The periods that two lines or more of rotations can be folded by."""
        return tuple(fold for fold in FOLDS if 2 * fold <= len(self))

    def values(self, measure: str) -> npt.NDArray[np.float64]:
        """One value a rotation, f64. InputError for another measure."""
        if measure not in get_args(Measure):
            raise InputError(f"measure is {measure!r}; give one of {', '.join(get_args(Measure))}")
        found = {"words": self.counts, "size": self.sizes, "ulp": self.ulps}[measure]
        return found.astype(np.float64)

    def spanned(self, measure: str) -> tuple[float, float]:
        """The range of a map's colours: of the other rotations all but the lowest and highest 2 in 100."""
        found = np.sort(self.values(measure)[self.others])
        cut = len(found) // 50
        return float(found[cut]), float(found[len(found) - 1 - cut])

    def explained(self, measure: str, fold: int) -> tuple[float, float] | None:
        """How much of the spread the columns of ``rotation % fold`` explain, and would after a shuffle.

        Shares of the sum of squares about the mean, of the other rotations; None where these are all alike.
        A reader with that period explains more than a shuffle does.
        """
        others = self.others
        values, column = self.values(measure)[others], others % fold
        spread = float(((values - values.mean()) ** 2).sum())
        if spread == 0 or len(others) < 2:
            return None
        members = np.bincount(column, minlength=fold)
        sums = np.bincount(column, values, minlength=fold)
        held = members > 0
        means = sums[held] / members[held]
        between = float((members[held] * (means - values.mean()) ** 2).sum())
        return between / spread, (int(held.sum()) - 1) / (len(others) - 1)

    def summary(self) -> str:
        """The sweep as a whole, in four lines."""
        others = self.counts[self.others]
        return (
            f"{len(self):,} rotations, {self.width:,} words each\n"
            f"own rotation {self.own:,}: {self.counts[self.own]:,} words differ\n"
            f"others: {others.min():,} to {others.max():,} words differ, "
            f"at most {self.sizes.max():.1e}, {self.ulps.max():,} ULP\n"
            f"rotations with no word different, the own one among them: {int((self.counts == 0).sum()):,}"
        )

    def folded(self, measure: str, fold: int) -> str:
        """What a fold shows, in a line."""
        shares = self.explained(measure, fold)
        if shares is None:
            return f"folded by {fold}: all other rotations alike in their {MEASURES[measure]}"
        return (
            f"folded by {fold}: columns explain {100 * shares[0]:.1f} % of the spread of the "
            f"{MEASURES[measure]}; after a shuffle it would be {100 * shares[1]:.1f} %"
        )

    def said(self, picked: int) -> str:
        """One rotation, in a line or two."""
        if picked == self.own:
            return f"picked rotation {picked:,}: the own one"
        if not self.counts[picked]:
            return f"picked rotation {picked:,}: no word differs"
        count = int(self.counts[picked])
        told = "1 word differs" if count == 1 else f"{count:,} words differ"
        pair = pair_text(
            ("own", f"rotation {picked:,}"),
            int(self.index[picked]),
            self.own_words[picked],
            self.other_words[picked],
        )
        return (
            f"picked rotation {picked:,}: {told}, at most {self.sizes[picked]:.1e}, "
            f"{self.ulps[picked]:,} ULP\nits largest difference, {pair}"
        )


def _compared(flat: npt.NDArray[np.float32], own: npt.NDArray[np.float32]) -> tuple[npt.NDArray[Any], ...]:
    base = np.broadcast_to(own, flat.shape)
    mask = differing(flat, base)
    sizes = np.abs(flat.astype(np.float64) - base)
    index = np.where(mask, sizes, -1.0).argmax(axis=1)
    return mask.sum(axis=1), sizes.max(axis=1), ulp_distance(flat, base).max(axis=1), index
