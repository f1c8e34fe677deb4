"""All planes of a model, appended together or not at all (§15.2)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from muser_viz.checks import floats, span, whole
from muser_viz.errors import ContextExhausted, InputError, SnapshotError
from muser_viz.geometry import MUSE_GLIMMER, Geometry, LayerKind
from muser_viz.plane import KvPlane, Undo
from muser_viz.snapshot import PlaneSnapshot, aside

FORMAT = "muser_viz.store.1"
MANIFEST = "store.json"


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
        if self.count == 1:
            flat = (plane.kv_dim,)
            key = floats("keys", _one_row(keys), flat)
            plane.append(self.position, key, floats("values", _one_row(values), flat), layer)
        else:
            shape = (self.count, plane.kv_dim)
            chunk = floats("keys", keys, shape)
            plane.append_batch(self.position, chunk, floats("values", values, shape), layer)
        self.written.add(layer)


def _one_row(rows: Any) -> Any:
    return rows[0] if getattr(rows, "ndim", 1) == 2 and len(rows) == 1 else rows


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
        and origin.
        """
        position, count = span(position, count)
        before = [plane.reservation_undo(position, count, layer) for layer, plane in enumerate(self.planes)]
        if position + count > self.max_context:
            raise ContextExhausted(
                f"position {position + count - 1} is past max_context {self.max_context}; "
                "nothing was changed: make a store with a larger max_context"
            )
        before = self._filled(before)
        step = Step(self, position, count)
        try:
            yield step
            unwritten = [layer for layer in range(len(self.planes)) if layer not in step.written]
            if unwritten:
                raise InputError(
                    f"the step at position {position} ended with {len(unwritten)} of {len(self.planes)} "
                    f"layers unwritten, layer {unwritten[0]} first; all were put back: write every layer"
                )
        except BaseException:
            for layer, undo in enumerate(before):
                self.planes[layer].undo(undo)
            raise
        finally:
            step.open = False

    def _filled(self, undos: list[Undo]) -> list[Undo]:
        """The undos with the bytes that they name, read in one go."""
        held = iter(self.planes[0].device.read([part for undo in undos for part in undo.parts]))
        return [replace(undo, contents=tuple(next(held) for _ in undo.parts)) for undo in undos]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write every plane's snapshot to ``folder``, then the manifest that names them.

        The manifest is renamed into place last: until then an earlier save
        in the folder stays whole. The earlier save's files are removed after that.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        earlier = _read_manifest(target / MANIFEST)[3] if (target / MANIFEST).exists() else []
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
        except BaseException:
            for name in names:
                (target / name).unlink(missing_ok=True)
            raise
        for name in earlier:
            (target / name).unlink(missing_ok=True)

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
        store.planes = tuple(KvPlane.restore(snapshot, backend=backend) for snapshot in snapshots)
        return store

    def __repr__(self) -> str:
        return (
            f"KvStore({len(self.planes)} planes, max_context={self.max_context}, "
            f"next_position={self.next_position}, {self.nbytes} bytes)"
        )


def _head_major(geometry: Geometry, layer: int) -> bool:
    return geometry.kind(layer) is LayerKind.FULL_NOPE


def _read_manifest(path: Path) -> tuple[Geometry, int, int, list[str]]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SnapshotError(f"{path} does not exist: save a store there first") from None
    except (OSError, ValueError) as error:
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
        or not all(isinstance(name, str) and Path(name).name == name for name in names)
    ):
        raise SnapshotError(f"{path}: planes is no list of {geometry.n_layers} file names in its folder")
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
