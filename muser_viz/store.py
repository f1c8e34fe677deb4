"""All planes of a model, appended together or not at all (§15.2)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields, replace
from functools import partial
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

FORMAT = "muser_viz.store.1"
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
        layer = whole("layer", layer, 0, self._store.geometry.n_layers - 1)
        if not self.open:
            raise InputError(f"layer {layer} was written after its step had ended: open another step")
        if layer in self.written:
            raise InputError(f"layer {layer} was written twice in one step: write each layer once")
        plane = self._store.planes[layer]
        if self.count == 1 and np.ndim(keys) == 1:
            plane.store_row(self.position, keys, values, layer)
        else:
            chunk = floats("keys", keys, (self.count, plane.kv_dim))
            plane.store_chunk(self.position, chunk, values, layer)
        self.written.add(layer)


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

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write every plane's snapshot to ``folder``, then the manifest that names them.

        The manifest is renamed into place last: until then an earlier save
        in the folder stays whole. Plane files that the manifest then in place does
        not name are removed. InputError while a step is open, or where the layers
        are at different positions.
        """
        positions = {plane.next_position for plane in self.planes}
        if self._open is not None or len(positions) > 1:
            raise InputError(
                f"layers are at positions {min(positions)} to {max(positions)}, or a step is open; "
                "an earlier save was left as it is: end the step, bring the layers level, save again"
            )
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        mark = uuid4().hex[:8]
        names = [f"plane-{layer:02d}-{mark}.safetensors" for layer in range(len(self.planes))]
        manifest = {
            "format": FORMAT,
            "geometry": asdict(self.geometry),
            "max_context": self.max_context,
            "next_position": self.next_position,
            "planes": names,
        }
        try:
            for plane, name in zip(self.planes, names, strict=True):
                plane.snapshot().save(target / name)
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
        geometry, max_context, next_position, names = _read_manifest(path)
        snapshots = []
        for layer, name in enumerate(names):
            snapshot = PlaneSnapshot.load(path.parent / name)
            _check_plane(f"{path.parent / name}", snapshot, geometry, layer, max_context, next_position)
            snapshots.append(snapshot)
        store = cls.__new__(cls)
        store.geometry = geometry
        store.max_context = max_context
        store._open = None
        store.planes = tuple(KvPlane.restore(snapshot, backend=backend) for snapshot in snapshots)
        return store

    def __repr__(self) -> str:
        return (
            f"KvStore({len(self.planes)} planes, max_context={self.max_context}, "
            f"next_position={self.next_position}, {self.nbytes} bytes)"
        )


def _head_major(geometry: Geometry, layer: int) -> bool:
    return geometry.kind(layer) is LayerKind.FULL_NOPE


def _sweep(folder: Path) -> None:
    """Remove plane files, and unfinished ones, that the manifest in place does not name."""
    try:
        named = set(_read_manifest(folder / MANIFEST)[3])
    except SnapshotError:
        return
    for path in folder.iterdir():
        if _PLANE_FILE.fullmatch(path.name) and path.name not in named:
            with suppress(OSError):
                path.unlink()
        elif _UNFINISHED.fullmatch(path.name):
            rmtree(path, ignore_errors=True)


def _read_manifest(path: Path) -> tuple[Geometry, int, int, list[str]]:
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
    return geometry, max_context, next_position, names


def _check_plane(
    name: str, snapshot: PlaneSnapshot, geometry: Geometry, layer: int, max_context: int, next_position: int
) -> None:
    wanted: dict[str, object] = {
        "head_major": _head_major(geometry, layer),
        "capacity": geometry.capacity(layer, max_context),
        "n_kv_heads": geometry.n_kv_heads,
        "head_dim": geometry.head_dim,
        "next_position": next_position,
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
