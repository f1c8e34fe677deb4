"""The KV store of chapter 15, to be run: planes, rings, store kernels, bits.

Names are loaded when first used, so that the import is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muser_viz.allocation import draw_planes as draw_planes
    from muser_viz.allocation import plane_table as plane_table
    from muser_viz.backends_picture import draw_backends as draw_backends
    from muser_viz.bill import footprint as footprint
    from muser_viz.bill_picture import draw_bill as draw_bill
    from muser_viz.bits import differing as differing
    from muser_viz.bits import hexbits as hexbits
    from muser_viz.bits import ulp_distance as ulp_distance
    from muser_viz.devices import backends as backends
    from muser_viz.devices import use_backend as use_backend
    from muser_viz.dispatches import fused_read as fused_read
    from muser_viz.dispatches import seen as seen
    from muser_viz.encodings import attend_rows as attend_rows
    from muser_viz.encodings import encode as encode
    from muser_viz.errors import BackendUnavailable as BackendUnavailable
    from muser_viz.errors import CacheDiscontinuity as CacheDiscontinuity
    from muser_viz.errors import ContextExhausted as ContextExhausted
    from muser_viz.errors import InputError as InputError
    from muser_viz.errors import KernelError as KernelError
    from muser_viz.errors import MuserVizError as MuserVizError
    from muser_viz.errors import NotLive as NotLive
    from muser_viz.errors import SnapshotError as SnapshotError
    from muser_viz.generation import Generation as Generation
    from muser_viz.generation import StandInModel as StandInModel
    from muser_viz.generation import generate as generate
    from muser_viz.generation import rows_needed as rows_needed
    from muser_viz.geometry import MUSE_GLIMMER as MUSE_GLIMMER
    from muser_viz.geometry import Geometry as Geometry
    from muser_viz.geometry import LayerKind as LayerKind
    from muser_viz.hazards import ModuloPlane as ModuloPlane
    from muser_viz.hazards import UnfilledPlane as UnfilledPlane
    from muser_viz.hazards import read_to_capacity as read_to_capacity
    from muser_viz.inputs import seeded as seeded
    from muser_viz.layout_cells import cells as cells
    from muser_viz.layout_picture import draw_layouts as draw_layouts
    from muser_viz.ledger import claims as claims
    from muser_viz.lessons import exercise as exercise
    from muser_viz.lessons import predict as predict
    from muser_viz.link import Link as Link
    from muser_viz.link import Prefill as Prefill
    from muser_viz.link_picture import draw_link as draw_link
    from muser_viz.listing import kernel_source as kernel_source
    from muser_viz.model.build import local_model as local_model
    from muser_viz.model.build import small_model as small_model
    from muser_viz.model.caches import model_caches as model_caches
    from muser_viz.model.recorded import model_receipts as model_receipts
    from muser_viz.model.runs import compare_sessions as compare_sessions
    from muser_viz.model.runs import feed_model as feed_model
    from muser_viz.model.runs import generate_greedily as generate_greedily
    from muser_viz.model.runs import peer_caches as peer_caches
    from muser_viz.model.runs import peer_rows as peer_rows
    from muser_viz.model.spread_picture import draw_spread as draw_spread
    from muser_viz.paging import PagedPlane as PagedPlane
    from muser_viz.pictures import draw_bits as draw_bits
    from muser_viz.pictures import draw_ring as draw_ring
    from muser_viz.pictures import draw_sweep as draw_sweep
    from muser_viz.plane import KvPlane as KvPlane
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
    from muser_viz.staging import attend_from_front as attend_from_front
    from muser_viz.staging import draw_staging as draw_staging
    from muser_viz.staging import rows_lost as rows_lost
    from muser_viz.staging import stage as stage
    from muser_viz.staging import staged_span as staged_span
    from muser_viz.store import KvStore as KvStore
    from muser_viz.thread_picture import draw_threads as draw_threads
    from muser_viz.threads import store_launch as store_launch
    from muser_viz.trace import RingTrace as RingTrace
    from muser_viz.views.bill_view import Bill as Bill
    from muser_viz.views.bits_view import BitsView as BitsView
    from muser_viz.views.layout_view import LayoutView as LayoutView
    from muser_viz.views.ring_player import RingPlayer as RingPlayer
    from muser_viz.views.rotation_sweep import RotationSweep as RotationSweep
    from muser_viz.views.staging_view import Staging as Staging
    from muser_viz.views.store_view import StoreView as StoreView
    from muser_viz.work_picture import draw_work as draw_work

__version__ = "0.1.0"

_HOMES = {
    "allocation": ("draw_planes", "plane_table"),
    "hazards": ("ModuloPlane", "UnfilledPlane", "read_to_capacity"),
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
    "backends_picture": ("draw_backends",),
    "bill": ("footprint",),
    "bill_picture": ("draw_bill",),
    "generation": ("Generation", "StandInModel", "generate", "rows_needed"),
    "geometry": ("MUSE_GLIMMER", "Geometry", "LayerKind"),
    "inputs": ("seeded",),
    "layout_picture": ("draw_layouts",),
    "ledger": ("claims",),
    "lessons": ("exercise", "predict"),
    "pictures": ("draw_bits", "draw_ring", "draw_sweep"),
    "plane": ("KvPlane",),
    "views.bill_view": ("Bill",),
    "views.ring_player": ("RingPlayer",),
    "views.bits_view": ("BitsView",),
    "views.rotation_sweep": ("RotationSweep",),
    "views.staging_view": ("Staging",),
    "readers": ("attend", "scores", "stand_in_logits", "sweep_rotations"),
    "recorded": ("Receipt", "receipts"),
    "ring": ("Reservation", "Ring"),
    "selftest": ("scan_digest",),
    "snapshot": ("PlaneSnapshot",),
    "staging": ("attend_from_front", "draw_staging", "rows_lost", "stage", "staged_span"),
    "store": ("KvStore",),
    "trace": ("RingTrace",),
    "listing": ("kernel_source",),
    "thread_picture": ("draw_threads",),
    "threads": ("store_launch",),
    "views.layout_view": ("LayoutView",),
    "views.store_view": ("StoreView",),
    "work_picture": ("draw_work",),
    "dispatches": ("fused_read", "seen"),
    "encodings": ("attend_rows", "encode"),
    "layout_cells": ("cells",),
    "link": ("Link", "Prefill"),
    "link_picture": ("draw_link",),
    "paging": ("PagedPlane",),
    "model.build": ("local_model", "small_model"),
    "model.caches": ("model_caches",),
    "model.recorded": ("model_receipts",),
    "model.runs": ("compare_sessions", "feed_model", "generate_greedily", "peer_caches", "peer_rows"),
    "model.spread_picture": ("draw_spread",),
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
