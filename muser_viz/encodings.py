"""The same rows in f32, f16 and Q8_0, and a reader of decoded rows (§15.8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from muser_viz import launches
from muser_viz.checks import floats
from muser_viz.devices.oracle import NumpyDevice
from muser_viz.errors import InputError
from muser_viz.layout import Layout
from muser_viz.ring import Ring

Encoding = Literal["f32", "f16", "q8_0"]
F32 = npt.NDArray[np.float32]
Q8_0 = np.dtype([("scale", "<f2"), ("quants", "i1", (32,))])
"""A block of Q8_0: 32 elements in 34 bytes."""
_DTYPES: dict[str, np.dtype[Any]] = {"f32": np.dtype("<f4"), "f16": np.dtype("<f2"), "q8_0": Q8_0}


@dataclass(frozen=True)
class Encoded:
    """Rows as bytes; ``shape`` is that of the rows."""

    encoding: Encoding
    data: bytes
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes stored."""
        return len(self.data)

    def decode(self) -> F32:
        """The rows as f32, from the bytes alone: for Q8_0, scale times quant, which is exact in f32."""
        stored: npt.NDArray[Any] = np.frombuffer(self.data, _DTYPES[self.encoding])
        if self.encoding == "q8_0":
            scale = stored["scale"].astype(np.float32)[:, None]
            return np.asarray(scale * stored["quants"].astype(np.float32)).reshape(self.shape)
        return np.asarray(stored.astype(np.float32)).reshape(self.shape)


def encode(rows: Any, encoding: Encoding) -> Encoded:
    """Rows (f32, ``(n, width)``) as f32, f16 or Q8_0 (§15.8).

    Q8_0 takes 32 elements of a row at a time: the scale is the largest magnitude
    / 127, stored as f16; a quant is the element times the f32 scale's reciprocal,
    rounded to whole, halves away from 0. Every step is one IEEE f32 operation an
    element: the same bytes on every machine. InputError for another encoding,
    shape or dtype, a width that 32 does not divide (Q8_0), what is not finite,
    or what f16 cannot hold.
    """
    if encoding not in get_args(Encoding):
        raise InputError(f"encoding {encoding!r} was asked for; there are {', '.join(get_args(Encoding))}")
    rows = floats("rows", rows, (None, None))
    if not np.isfinite(rows).all():
        raise InputError("rows hold infinities or NaNs; give finite rows")
    if encoding == "q8_0":
        stored = _quantised(rows)
    else:
        with np.errstate(over="ignore"):
            stored = rows.astype(_DTYPES[encoding])
        if not np.isfinite(stored).all():
            raise InputError("rows hold a value past f16's range; give rows within 65504")
    return Encoded(encoding, stored.tobytes(), rows.shape)


def _quantised(rows: F32) -> npt.NDArray[Any]:
    if rows.shape[1] % 32:
        raise InputError(f"rows are {rows.shape[1]} wide; Q8_0 takes a multiple of 32")
    blocks = rows.reshape(-1, 32)
    scale = np.abs(blocks).max(axis=1) / np.float32(127)
    with np.errstate(over="ignore"):
        half = scale.astype(np.float16)
    if not np.isfinite(half).all():
        raise InputError("a block's scale is past f16's range; give smaller rows")
    reciprocal = np.zeros_like(scale)
    np.divide(np.float32(1), scale, out=reciprocal, where=half != 0)
    wide = (blocks * reciprocal[:, None]).astype(np.float64)
    stored = np.zeros(len(blocks), Q8_0)
    stored["scale"] = half
    stored["quants"] = np.copysign(np.floor(np.abs(wide) + 0.5), wide).astype(np.int8)
    return stored


def attend_rows(keys: Any, values: Any, query: Any) -> F32:
    """The scan reader over rows in f32, in the order given: f32, ``(n_query_heads, head_dim)`` (§15.8).

    ``keys`` and ``values``: f32, ``(n, kv_dim)``; ``query``: f32, ``(n_query_heads,
    head_dim)``. Where the rows are f16 values these are the bits of ``attend`` over
    a plane that holds them in that order. Runs in NumPy on every backend.
    InputError for another shape or dtype, or no row.
    """
    query = floats("query", query, (None, None))
    keys = floats("keys", keys, (None, None))
    values = floats("values", values, keys.shape)
    head_dim = query.shape[1]
    n, kv_dim = keys.shape
    if n == 0 or head_dim == 0 or kv_dim == 0 or kv_dim % head_dim:
        raise InputError(
            f"keys are {keys.shape} for heads of {head_dim}; give one row or more of whole heads"
        )
    layout = Layout(n, kv_dim // head_dim, head_dim)
    heads = query.shape[0]
    if heads == 0 or heads % layout.n_kv_heads:
        raise InputError(f"query has {heads} heads; give a multiple of {layout.n_kv_heads} KV heads")
    device, ring = NumpyDevice(), Ring(n, len=n)
    scored = launches.scores(device, query, keys, heads, layout, ring)
    weighted = launches.weights(device, scored, heads, ring)
    read = launches.mix(device, weighted, values, np.zeros(1, np.uint32), heads, layout, ring)
    return np.asarray(read).reshape(query.shape)
