"""The KV store of chapter 15, to be run: planes, rings, store kernels, bits.

Names are loaded when first used, so that the import is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muser_viz.bill import footprint as footprint
    from muser_viz.bits import differing as differing
    from muser_viz.bits import hexbits as hexbits
    from muser_viz.bits import ulp_distance as ulp_distance
    from muser_viz.devices import backends as backends
    from muser_viz.devices import use_backend as use_backend
    from muser_viz.errors import BackendUnavailable as BackendUnavailable
    from muser_viz.errors import CacheDiscontinuity as CacheDiscontinuity
    from muser_viz.errors import ContextExhausted as ContextExhausted
    from muser_viz.errors import InputError as InputError
    from muser_viz.errors import KernelError as KernelError
    from muser_viz.errors import MuserVizError as MuserVizError
    from muser_viz.errors import NotLive as NotLive
    from muser_viz.errors import SnapshotError as SnapshotError
    from muser_viz.geometry import MUSE_GLIMMER as MUSE_GLIMMER
    from muser_viz.geometry import Geometry as Geometry
    from muser_viz.geometry import LayerKind as LayerKind
    from muser_viz.inputs import seeded as seeded
    from muser_viz.lessons import exercise as exercise
    from muser_viz.lessons import predict as predict
    from muser_viz.pictures import draw_bits as draw_bits
    from muser_viz.pictures import draw_ring as draw_ring
    from muser_viz.pictures import draw_sweep as draw_sweep
    from muser_viz.plane import KvPlane as KvPlane
    from muser_viz.player import RingPlayer as RingPlayer
    from muser_viz.readers import attend as attend
    from muser_viz.readers import scores as scores
    from muser_viz.readers import stand_in_logits as stand_in_logits
    from muser_viz.readers import sweep_rotations as sweep_rotations
    from muser_viz.recorded import Receipt as Receipt
    from muser_viz.recorded import receipts as receipts
    from muser_viz.ring import Reservation as Reservation
    from muser_viz.ring import Ring as Ring
    from muser_viz.selftest import scan_digest as scan_digest
    from muser_viz.snapshot import PlaneSnapshot as PlaneSnapshot
    from muser_viz.store import KvStore as KvStore
    from muser_viz.trace import RingTrace as RingTrace

__version__ = "0.1.0"

_HOMES = {
    "devices": ("backends", "use_backend"),
    "bits": ("differing", "hexbits", "ulp_distance"),
    "errors": (
        "BackendUnavailable",
        "CacheDiscontinuity",
        "ContextExhausted",
        "InputError",
        "KernelError",
        "MuserVizError",
        "NotLive",
        "SnapshotError",
    ),
    "bill": ("footprint",),
    "geometry": ("MUSE_GLIMMER", "Geometry", "LayerKind"),
    "inputs": ("seeded",),
    "lessons": ("exercise", "predict"),
    "pictures": ("draw_bits", "draw_ring", "draw_sweep"),
    "plane": ("KvPlane",),
    "player": ("RingPlayer",),
    "readers": ("attend", "scores", "stand_in_logits", "sweep_rotations"),
    "recorded": ("Receipt", "receipts"),
    "ring": ("Reservation", "Ring"),
    "selftest": ("scan_digest",),
    "snapshot": ("PlaneSnapshot",),
    "store": ("KvStore",),
    "trace": ("RingTrace",),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*sorted(_MODULES), "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
