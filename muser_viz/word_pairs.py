"""Two words of one place in words: hex, decimal, and how far apart (§15.6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from muser_viz.bits import hexbits, ulp_distance, words


def decimal(value: Any) -> str:
    """An f16 or f32 number in as many digits as tell its word from every other: 5 or 9."""
    number = np.asarray(value)
    return format(float(number), ".5g" if number.itemsize == 2 else ".9g")


def pair_text(names: tuple[str, str], index: int, a: Any, b: Any) -> str:
    """The words of two arrays at one place: ``a`` and ``b`` are f16 or f32 numbers of one dtype.

    Hex, decimal, the bits that differ, and the distance in ULP and absolute; to a NaN there is none.
    """
    left, right = np.asarray(a), np.asarray(b)
    one, two = (f"{hexbits(number).item()} = {decimal(number)}" for number in (left, right))
    flipped = int(words(left)) ^ int(words(right))
    if not flipped:
        return f"word {index:,}: {one}, the same bits in {names[0]} and {names[1]}"
    count = flipped.bit_count()
    bits = "1 bit differs" if count == 1 else f"{count} bits differ"
    if np.isnan(left) or np.isnan(right):
        apart = "no distance: a NaN lies on no number line"
    else:
        size = abs(float(left) - float(right))
        apart = f"{int(ulp_distance(left, right)):,} ULP, {size:.1e} apart"
    return f"word {index:,}: {names[0]} {one}, {names[1]} {two}; {bits}, {apart}"
