"""Checks at the door: what is asked, what holds, what to do."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from muser_viz.errors import InputError

POSITION_LIMIT = 1 << 32
"""Token positions and element counts are ``uint`` in the kernels."""


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int in ``low .. high``; InputError otherwise."""
    if type(value) is int and low <= value and (high is None or value <= high):
        return value
    bounds = f"from {low}" if high is None else f"from {low} to {high}"
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{name} is {value!r}; give a whole number {bounds}") from None
    if number < low or (high is not None and number > high):
        raise InputError(f"{name} is {number}; give a whole number {bounds}")
    return number


def span(position: object, count: object = 1) -> tuple[int, int]:
    """Check a token position and a count of tokens that start there."""
    first = whole("position", position, 0, POSITION_LIMIT - 1)
    number = whole("count", count, 0, POSITION_LIMIT - 1)
    if first + number > POSITION_LIMIT:
        raise InputError(
            f"{number} tokens from position {first} end past 2**32; kernels see 32-bit positions"
        )
    return first, number


def floats(name: str, value: Any, shape: tuple[int | None, ...]) -> npt.NDArray[np.float32]:
    """Return ``value`` as a C-ordered f32 array of ``shape`` (None: any length)."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{name} is no array ({error})") from None
    if array.dtype != np.float32:
        raise InputError(f"{name} is {array.dtype}; the store kernels take float32: {name}.astype('float32')")
    if array.ndim != len(shape) or any(
        want is not None and have != want for have, want in zip(array.shape, shape, strict=True)
    ):
        sizes = ", ".join("n" if n is None else str(n) for n in shape)
        wanted = f"({sizes},)" if len(shape) == 1 else f"({sizes})"
        raise InputError(f"{name} has shape {array.shape}; give {wanted}")
    return np.ascontiguousarray(array)
