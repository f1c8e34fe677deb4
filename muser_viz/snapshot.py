"""A plane's live rows apart from the plane, and their file (§15.6)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from muser_viz.bits import words
from muser_viz.checks import POSITION_LIMIT, whole
from muser_viz.errors import InputError, SnapshotError
from muser_viz.layout import Layout

FORMAT = "muser_viz.plane.2"
_NUMBERS = ("capacity", "origin_logical", "n_kv_heads", "head_dim", "len")
_DIGESTS = ("sha256_key", "sha256_value", "sha256_fields")
_LAYOUTS = {"token-major": False, "head-major": True}


def _half(field: str, values: Any) -> npt.NDArray[np.float16]:
    """A read-only f16 copy of f16, or of f32 that is exactly f16."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise SnapshotError(f"{field} is no array ({error})") from None
    if array.ndim != 3:
        raise SnapshotError(f"{field} has shape {array.shape}; give (n_kv_heads, len, head_dim)")
    if array.dtype == np.float32:
        with np.errstate(over="ignore", invalid="ignore"):
            back = array.astype(np.float16).astype(np.float32)
        changed = np.argwhere(words(back) != words(array))
        if changed.size:
            first = tuple(int(i) for i in changed[0])
            raise SnapshotError(
                f"{field}{list(first)} is {array[first]!r}, which is no f16; "
                "an f32 snapshot is taken where every value is exactly an f16: round it first"
            )
    elif array.dtype != np.float16:
        raise SnapshotError(f"{field} is {array.dtype}; give float16, or float32 that is exactly float16")
    half = np.array(array, dtype=np.float16, order="C")
    half.setflags(write=False)
    return half


def _whole(field: str, value: object, low: int, high: int | None = None) -> int:
    try:
        return whole(field, value, low, high)
    except InputError as error:
        raise SnapshotError(str(error)) from None


class PlaneSnapshot:
    """The live rows of one plane in logical order, with what a restore needs (§15.6).

    ``keys`` and ``values``: f16, ``(n_kv_heads, len, head_dim)``, read-only
    copies; f32 is taken where every value is exactly an f16. ``capacity`` and
    ``origin_logical`` decide the rotation; ``head_major`` is the plane's layout.
    SnapshotError names the field that is not sound.
    """

    def __init__(
        self, keys: Any, values: Any, *, capacity: int, origin_logical: int, head_major: bool
    ) -> None:
        self._digests: dict[str, str] = {}
        self.keys = _half("keys", keys)
        self.values = _half("values", values)
        if self.keys.shape != self.values.shape:
            raise SnapshotError(
                f"keys are {self.keys.shape} and values {self.values.shape}; both have the same rows"
            )
        n_kv_heads, self.len, head_dim = self.keys.shape
        self.capacity = _whole("capacity", capacity, 1)
        self.origin_logical = _whole("origin_logical", origin_logical, 0, POSITION_LIMIT - 1)
        if self.len > self.capacity:
            raise SnapshotError(
                f"len is {self.len} and capacity {self.capacity}; len is at most the capacity"
            )
        if self.origin_logical > 0 and self.len < self.capacity:
            raise SnapshotError(
                f"origin_logical is {self.origin_logical} with len {self.len} of {self.capacity}; "
                "a window slides only once its ring is full"
            )
        if self.origin_logical + self.len > POSITION_LIMIT:
            raise SnapshotError(f"origin_logical is {self.origin_logical}; positions end at 2**32 - 1")
        try:
            self.layout = Layout(self.capacity, n_kv_heads, head_dim, head_major)
        except InputError as error:
            raise SnapshotError(str(error)) from None

    @property
    def head_major(self) -> bool:
        """The layout of the plane that it came from."""
        return self.layout.head_major

    @property
    def rotation(self) -> int:
        """The row of the window's front in a ring filled one token at a time: §15.6's formula."""
        return self.origin_logical % self.capacity

    def __repr__(self) -> str:
        return (
            f"PlaneSnapshot(len={self.len}, capacity={self.capacity}, "
            f"origin_logical={self.origin_logical}, layout={self.layout.name})"
        )

    def digests(self) -> dict[str, str]:
        """SHA-256 of the K rows, of the V rows (f16, as they lie here), and of all other fields."""
        if self._digests:
            return self._digests
        rows = {
            f"sha256_{name}": hashlib.sha256(np.ascontiguousarray(held).tobytes()).hexdigest()
            for name, held in (("key", self.keys), ("value", self.values))
        }
        fields = "\n".join(f"{name}={value}" for name, value in self._fields().items())
        self._digests = {**rows, "sha256_fields": hashlib.sha256(fields.encode()).hexdigest()}
        return self._digests

    def _fields(self) -> dict[str, str]:
        return {
            "format": FORMAT,
            "layout": self.layout.name,
            "capacity": str(self.capacity),
            "origin_logical": str(self.origin_logical),
            "n_kv_heads": str(self.layout.n_kv_heads),
            "head_dim": str(self.layout.head_dim),
            "len": str(self.len),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file, aside and then renamed: an earlier file stays whole till then.

        It carries SHA-256 digests of the rows and of the other fields.
        """
        metadata = {**self._fields(), **self.digests()}
        with aside(Path(path)) as unfinished:
            save_file({"key": self.keys, "value": self.values}, unfinished, metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PlaneSnapshot:
        """Read a file that ``save`` wrote. SnapshotError names the file and the field."""
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                names = set(file.keys()) & {"key", "value"}
                found = {name: file.get_tensor(name) for name in names}
        except FileNotFoundError:
            raise SnapshotError(f"{path} does not exist: save a snapshot there first") from None
        except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
            raise SnapshotError(
                f"{path} is no whole safetensors file of f16 ({error}): save it again"
            ) from error
        try:
            return cls._from_file(metadata, found)
        except SnapshotError as error:
            raise SnapshotError(f"{path}: {error}") from None

    @classmethod
    def _from_file(cls, metadata: Mapping[str, str], tensors: Mapping[str, Any]) -> PlaneSnapshot:
        if metadata.get("format") != FORMAT:
            raise SnapshotError(f"format is {metadata.get('format')!r}; {FORMAT!r} is read here")
        missing = [name for name in ("layout", *_NUMBERS, *_DIGESTS) if name not in metadata]
        missing += [name for name in ("key", "value") if name not in tensors]
        if missing:
            raise SnapshotError(f"{missing[0]} is missing: save it again")
        if metadata["layout"] not in _LAYOUTS:
            raise SnapshotError(f"layout is {metadata['layout']!r}; it is one of {', '.join(_LAYOUTS)}")
        numbers = {}
        for name in _NUMBERS:
            if not re.fullmatch(r"0|[1-9]\d{0,18}", metadata[name], re.ASCII):
                raise SnapshotError(f"{name} is {metadata[name][:40]!r}; it is a whole number")
            numbers[name] = int(metadata[name])
        snapshot = cls(
            tensors["key"],
            tensors["value"],
            capacity=numbers["capacity"],
            origin_logical=numbers["origin_logical"],
            head_major=_LAYOUTS[metadata["layout"]],
        )
        held = {
            "len": snapshot.len,
            "n_kv_heads": snapshot.layout.n_kv_heads,
            "head_dim": snapshot.layout.head_dim,
        }
        for name, value in held.items():
            if numbers[name] != value:
                raise SnapshotError(f"{name} is {numbers[name]} and the rows have {value}")
        for name, digest in snapshot.digests().items():
            if metadata[name] != digest:
                what = name.removeprefix("sha256_")
                raise SnapshotError(
                    f"{what} {'are' if what == 'fields' else 'is'} not what was saved: "
                    f"SHA-256 is {digest[:12]}.. and {name} says {metadata[name][:12]!r}: "
                    "take another copy of the file, or save again"
                )
        return snapshot


@contextlib.contextmanager
def aside(path: Path) -> Iterator[Path]:
    """A path beside ``path`` to write; renamed to it at the end, removed on an error."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        unfinished = Path(folder, path.name)
        yield unfinished
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(unfinished, path)
