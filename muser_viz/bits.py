"""Comparing arrays by their bits, not by their values (§15.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz.errors import InputError

_WORDS: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float16): np.dtype(np.uint16),
    np.dtype(np.float32): np.dtype(np.uint32),
}


def words(array: Any) -> npt.NDArray[Any]:
    """The raw words of an f16 or f32 array: uint16 or uint32, same shape. InputError otherwise."""
    values = np.asarray(array)
    if values.dtype not in _WORDS:
        raise InputError(f"an array of {values.dtype} was given; bits are compared of float16 or float32")
    return np.ascontiguousarray(values).reshape(values.shape).view(_WORDS[values.dtype])


def _pair(a: Any, b: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    left, right = np.asarray(a), np.asarray(b)
    if left.dtype != right.dtype or left.shape != right.shape:
        raise InputError(
            f"{left.dtype} {left.shape} and {right.dtype} {right.shape} were given; "
            "bits are compared of two arrays of one dtype and shape"
        )
    return words(left), words(right)


def differing(a: Any, b: Any) -> npt.NDArray[np.bool_]:
    """Where two f16 or f32 arrays differ in any bit: bool, same shape (-0 and +0 differ).

    InputError where shapes or dtypes are unequal. §15.6.
    """
    left, right = _pair(a, b)
    return np.asarray(left != right)


def ulp_distance(a: Any, b: Any) -> npt.NDArray[np.int64]:
    """How many representable numbers apart, element by element: int64, same shape.

    -0 and +0 are 0 apart. InputError for NaN, and where shapes or dtypes are
    unequal. §15.6.
    """
    left, right = _pair(a, b)
    if bool(np.isnan(np.asarray(a)).any() or np.isnan(np.asarray(b)).any()):
        raise InputError("a NaN was given; it lies on no number line: leave NaNs out of a ULP distance")

    def rank(word: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        sign = 1 << (8 * word.itemsize - 1)
        magnitude = (word & (sign - 1)).astype(np.int64)
        return np.where(word & sign, -magnitude, magnitude)

    return np.asarray(np.abs(rank(left) - rank(right)))


def hexbits(a: Any) -> npt.NDArray[np.str_]:
    """Each word as hexadecimal text, ``0x3c00`` or ``0x3f800000``: str array, same shape."""
    raw = words(a)
    digits = 2 * raw.itemsize
    text = [f"0x{int(word):0{digits}x}" for word in raw.ravel()]
    return np.array(text, dtype=f"<U{digits + 2}").reshape(raw.shape)
