"""Seeded inputs whose bits are the same on every machine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muser_viz.checks import whole


def seeded(seed: int, *shape: int) -> npt.NDArray[np.float32]:
    """Bell-shaped f32 values made from ``seed`` by integers alone: mean 0, deviation about 1.

    Each is a sum of four 16-bit numbers (SplitMix64 of seed and index), scaled
    by a power of two: exact, so no library or processor can change a bit.
    InputError for a seed outside ``0 .. 2**32 - 1`` or a size below 0.
    """
    seed = whole("seed", seed, 0, (1 << 32) - 1)
    sizes = tuple(whole("size", size, 0) for size in shape)
    index = np.arange(int(np.prod(sizes, dtype=np.int64)), dtype=np.uint64)
    x = (index + (np.uint64(seed) << np.uint64(32)) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    total = sum(((x >> np.uint64(16 * k)) & np.uint64(0xFFFF)).astype(np.int64) for k in range(4))
    centred = np.asarray(total, np.int64) - 2 * 65535
    return (centred.astype(np.float32) * np.float32(2.0**-15)).reshape(sizes)
