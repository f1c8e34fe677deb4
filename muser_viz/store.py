"""All planes of a model, appended together or not at all (§15.2)."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

import numpy as np

from muser_viz.checks import floats, span, whole
from muser_viz.errors import ContextExhausted, InputError, SnapshotError
from muser_viz.geometry import MUSE_GLIMMER, Geometry, LayerKind
from muser_viz.interrupts import finished
from muser_viz.plane import KvPlane, Undo
from muser_viz.snapshot import PlaneSnapshot, aside

FORMAT = "muser_viz.store.2"
MANIFEST = "store.json"
_PLANE_FILE = re.compile(r"plane-\d{2,}-[0-9a-f]{8}\.safetensors", re.ASCII)
_UNFINISHED = re.compile(rf"\.({_PLANE_FILE.pattern}|{re.escape(MANIFEST)})-\w+", re.ASCII)


class Step:
    """One step of a model through the layers, open between ``__enter__`` and ``__exit__``."""

    def __init__(self, store: KvStore, position: int, count: int) -> None:
        self._store = store
        self.position = position
        self.count = count
        self.written: set[int] = set()
        self.open = True

    def write(self, layer: int, keys: Any, values: Any) -> None:
        """Store this step's rows of one layer: f32, ``(count, kv_dim)``, or ``(kv_dim,)`` for one token.

        InputError for another shape, a layer written before, or a step that has ended.
        """
        layer = self._unwritten(layer)
        plane = self._store.planes[layer]
        if self.count == 1 and np.ndim(keys) == 1:
            plane.store_row(self.position, keys, values, layer)
        else:
            chunk = floats("keys", keys, (self.count, plane.kv_dim))
            plane.store_chunk(self.position, chunk, values, layer)
        self.written.add(layer)

    def claim(self, layer: int) -> None:
        """Count a layer as written, for one who puts this step's rows there itself. Errors as ``write``."""
        self.written.add(self._unwritten(layer))

    def _unwritten(self, layer: int) -> int:
        layer = whole("layer", layer, 0, self._store.geometry.n_layers - 1)
        if not self.open:
            raise InputError(f"layer {layer} was written after its step had ended: open another step")
        if layer in self.written:
            raise InputError(f"layer {layer} was written twice in one step: write each layer once")
        return layer


class KvStore:
    """The planes of every layer of ``geometry``, allocated for ``max_context`` tokens (§15.2).

    Sliding layers get rings, token-major; full layers growing planes,
    head-major. Past ``max_context`` it refuses with ContextExhausted.
    """

    def __init__(
        self, geometry: Geometry = MUSE_GLIMMER, max_context: int | None = None, backend: str | None = None
    ) -> None:
        limit = geometry.context_limit if max_context is None else max_context
        self.geometry = geometry
        self.max_context = whole("max_context", limit, 1, geometry.context_limit)
        self.planes: tuple[KvPlane, ...] = tuple(
            KvPlane(
                geometry.capacity(layer, self.max_context),
                geometry.n_kv_heads,
                geometry.head_dim,
                _head_major(geometry, layer),
                backend,
            )
            for layer in range(geometry.n_layers)
        )
        self._open: Step | None = None

    @property
    def next_position(self) -> int:
        """The only token position that is accepted next."""
        return self.planes[0].next_position

    @property
    def positions(self) -> set[int]:
        """The next position of every plane: one, unless a call of a model ended half way."""
        at, last = set[int](), None
        for ring in map(attrgetter("_ring"), self.planes):  # under a model on a GPU two rings in all
            if ring is not last:
                at.add(ring.next_position)
                last = ring
        return at

    @property
    def open_step(self) -> Step | None:
        """The step that is open, if one is."""
        return self._open

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(plane.nbytes for plane in self.planes)

    @property
    def live_nbytes(self) -> int:
        """Bytes of live rows."""
        return sum(plane.live_nbytes for plane in self.planes)

    def append(self, position: int, keys: Any, values: Any) -> None:
        """Store one token in every layer: f32, ``(n_layers, kv_dim)``.

        CacheDiscontinuity, ContextExhausted or InputError where it is refused;
        then no layer was changed.
        """
        shape = (self.geometry.n_layers, self.geometry.kv_dim)
        keys, values = floats("keys", keys, shape), floats("values", values, shape)
        self._write_all(position, 1, keys, values)

    def append_batch(self, position: int, keys: Any, values: Any) -> None:
        """Store a chunk in every layer: f32, ``(n_layers, n, kv_dim)``. Errors as ``append``."""
        keys = floats("keys", keys, (self.geometry.n_layers, None, self.geometry.kv_dim))
        values = floats("values", values, keys.shape)
        self._write_all(position, keys.shape[1], keys, values)

    def _write_all(self, position: int, count: int, keys: Any, values: Any) -> None:
        with self.step(position, count) as step:
            for layer in range(self.geometry.n_layers):
                step.write(layer, keys[layer], values[layer])

    @contextmanager
    def step(self, position: int, count: int = 1) -> Iterator[Step]:
        """A context in which a model writes layer after layer.

        All layers are checked before any is written. A step that ends by an
        exception, or with a layer unwritten (InputError), puts back every row
        and origin. While it is open nothing else writes to the planes, and no
        other step begins (InputError).
        """
        position, count = span(position, count)
        if self._open is not None:
            raise InputError(
                f"the step at position {self._open.position} is still open: end it before another begins"
            )
        before = [plane.reservation_undo(position, count, layer) for layer, plane in enumerate(self.planes)]
        if position + count > self.max_context:
            raise ContextExhausted(
                f"position {position + count - 1} is past max_context {self.max_context}; "
                "nothing was changed: make a store with a larger max_context"
            )
        before = self._filled(before)
        step = Step(self, position, count)
        self._hold(step)
        try:
            yield step
            unwritten = [layer for layer in range(len(self.planes)) if layer not in step.written]
            if unwritten:
                raise InputError(
                    f"the step at position {position} ended with {len(unwritten)} of {len(self.planes)} "
                    f"layers unwritten, layer {unwritten[0]} first; all were put back: write every layer"
                )
        except BaseException:
            for plane, undo in zip(self.planes, before, strict=True):
                finished(partial(plane.undo, undo))
            raise
        finally:
            self._hold(None)
            step.open = False

    def _hold(self, step: Step | None) -> None:
        """Let one step alone write to the planes, or let go of them."""
        self._open = step
        for plane in self.planes:
            plane.held = step is not None

    def _filled(self, undos: list[Undo]) -> list[Undo]:
        """The undos with the bytes that they name, read in one go."""
        held = iter(self.planes[0].device.read([part for undo in undos for part in undo.parts]))
        return [replace(undo, contents=tuple(next(held) for _ in undo.parts)) for undo in undos]

    def turned(self, rotation: int | None = None) -> KvStore:
        """Another store with the same live rows, each ring installed at ``rotation`` (§15.6).

        None: at each plane's own, as a restore does. Growing planes stay at row 0.
        InputError for a rotation that a ring has not.
        """
        return KvStore._of(
            self.geometry,
            self.max_context,
            tuple(
                KvPlane.restore(
                    plane.snapshot(),
                    rotation if layer in self.geometry.sliding_layers else None,
                    plane.backend,
                )
                for layer, plane in enumerate(self.planes)
            ),
        )

    @classmethod
    def _of(cls, geometry: Geometry, max_context: int, planes: tuple[KvPlane, ...]) -> KvStore:
        store = cls.__new__(cls)
        store.geometry, store.max_context, store.planes = geometry, max_context, planes
        store._open = None
        return store

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write every plane's snapshot to ``folder``, then the manifest that names them.

        The manifest is renamed into place last: until then an earlier save
        in the folder stays whole. SHA-256 digests of every plane and of the manifest
        travel with it. Plane files that the manifest then in place does
        not name are removed. InputError while a step is open, or where the layers
        are at different positions.
        """
        positions = self.positions
        if self._open is not None or len(positions) > 1:
            raise InputError(
                f"layers are at positions {min(positions)} to {max(positions)}, or a step is open; "
                "an earlier save was left as it is: end the step, bring the layers level, save again"
            )
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        mark = uuid4().hex[:8]
        names = [f"plane-{layer:02d}-{mark}.safetensors" for layer in range(len(self.planes))]
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "geometry": asdict(self.geometry),
            "max_context": self.max_context,
            "next_position": self.next_position,
            "planes": names,
            "digests": [],
        }
        try:
            for plane, name in zip(self.planes, names, strict=True):
                snapshot = plane.snapshot()
                snapshot.save(target / name)
                manifest["digests"].append(_in_one(snapshot))
            manifest["sha256"] = _digest(manifest)
            with aside(target / MANIFEST) as unfinished:
                unfinished.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        finally:
            _sweep(target)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], backend: str | None = None) -> KvStore:
        """A store from ``save``'s folder; every plane is checked before one is built.

        SnapshotError names the file and the field.
        """
        path = Path(folder) / MANIFEST
        manifest = _read_manifest(path)
        snapshots = []
        for layer, name in enumerate(manifest.names):
            snapshot = PlaneSnapshot.load(path.parent / name)
            _check_plane(f"{path.parent / name}", snapshot, layer, manifest)
            snapshots.append(snapshot)
        try:
            digests = manifest.digests()
        except SnapshotError as error:
            raise SnapshotError(f"{path}: {error}") from None
        for name, snapshot, digest in zip(manifest.names, snapshots, digests, strict=True):
            if _in_one(snapshot) != digest:
                raise SnapshotError(
                    f"{path.parent / name}: rows or fields are not those that {MANIFEST} lists under "
                    "digests: take another copy of the folder, or save again"
                )
        if manifest.raw["sha256"] != _digest(manifest.raw):
            raise SnapshotError(
                f"{path}: sha256 is not that of the manifest's fields, one was changed: "
                "take another copy of the folder, or save again"
            )
        planes = tuple(KvPlane.restore(snapshot, backend=backend) for snapshot in snapshots)
        return cls._of(manifest.geometry, manifest.max_context, planes)

    def __repr__(self) -> str:
        return (
            f"KvStore({len(self.planes)} planes, max_context={self.max_context}, "
            f"next_position={self.next_position}, {self.nbytes} bytes)"
        )


@dataclass(frozen=True)
class _Manifest:
    geometry: Geometry
    max_context: int
    next_position: int
    names: list[str]
    raw: dict[str, Any]

    def digests(self) -> list[Any]:
        """The planes' digests. SnapshotError names the field that is not sound."""
        for name in ("digests", "sha256"):
            if name not in self.raw:
                raise SnapshotError(f"{name} is missing: save the store again")
        found = self.raw["digests"]
        if not isinstance(found, list) or len(found) != len(self.names):
            raise SnapshotError(f"digests is no list of {len(self.names)}: save the store again")
        return found


def _head_major(geometry: Geometry, layer: int) -> bool:
    return geometry.kind(layer) is LayerKind.FULL_NOPE


def _sweep(folder: Path) -> None:
    """Remove plane files, and unfinished ones, that the manifest in place does not name."""
    try:
        named = set(_read_manifest(folder / MANIFEST).names)
    except SnapshotError:
        return
    for path in folder.iterdir():
        if _PLANE_FILE.fullmatch(path.name) and path.name not in named:
            with suppress(OSError):
                path.unlink()
        elif _UNFINISHED.fullmatch(path.name):
            rmtree(path, ignore_errors=True)


def _read_manifest(path: Path) -> _Manifest:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SnapshotError(f"{path} does not exist: save a store there first") from None
    except (OSError, ValueError, RecursionError) as error:
        raise SnapshotError(f"{path} is no whole manifest ({error}): save the store again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else manifest
        raise SnapshotError(f"{path}: format is {found!r}; {FORMAT!r} is read here")
    for name in ("geometry", "max_context", "next_position", "planes"):
        if name not in manifest:
            raise SnapshotError(f"{path}: {name} is missing: save the store again")
    known = {field.name for field in fields(Geometry)}
    if not isinstance(manifest["geometry"], dict) or set(manifest["geometry"]) != known:
        raise SnapshotError(f"{path}: geometry has other fields than {', '.join(sorted(known))}")
    try:
        geometry = Geometry(**manifest["geometry"])
        max_context = whole("max_context", manifest["max_context"], 1, geometry.context_limit)
        next_position = whole("next_position", manifest["next_position"], 0, max_context)
    except InputError as error:
        raise SnapshotError(f"{path}: {error}") from None
    names = manifest["planes"]
    if (
        not isinstance(names, list)
        or len(names) != geometry.n_layers
        or not all(isinstance(name, str) and _PLANE_FILE.fullmatch(name) for name in names)
        or len(set(names)) < len(names)
    ):
        raise SnapshotError(f"{path}: planes is no list of {geometry.n_layers} different plane files")
    return _Manifest(geometry, max_context, next_position, names, manifest)


def _in_one(snapshot: PlaneSnapshot) -> str:
    """One SHA-256 of a snapshot's rows and fields."""
    return hashlib.sha256("\n".join(snapshot.digests().values()).encode()).hexdigest()


def _digest(manifest: dict[str, Any]) -> str:
    """SHA-256 of a manifest's fields but its own."""
    fields = {name: value for name, value in manifest.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _check_plane(name: str, snapshot: PlaneSnapshot, layer: int, manifest: _Manifest) -> None:
    geometry = manifest.geometry
    wanted: dict[str, object] = {
        "head_major": _head_major(geometry, layer),
        "capacity": geometry.capacity(layer, manifest.max_context),
        "n_kv_heads": geometry.n_kv_heads,
        "head_dim": geometry.head_dim,
        "next_position": manifest.next_position,
    }
    found: dict[str, object] = {
        "head_major": snapshot.head_major,
        "capacity": snapshot.capacity,
        "n_kv_heads": snapshot.layout.n_kv_heads,
        "head_dim": snapshot.layout.head_dim,
        "next_position": snapshot.origin_logical + snapshot.len,
    }
    for field, value in wanted.items():
        if found[field] != value:
            raise SnapshotError(f"{name}: {field} is {found[field]} where layer {layer} has {value}")
