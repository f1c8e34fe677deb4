"""A handoff over a link that falls asleep: a simulation in whole ticks (§15.8).

A tick is a unit of the simulation, nobody's clock. The bytes are the chapter's
payload; the rates and delays are parameters, measured on no wire.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal, get_args

from muser_viz.checks import whole
from muser_viz.errors import InputError
from muser_viz.geometry import MUSE_GLIMMER, Geometry

Schedule = Literal["held", "rings early", "by chunk", "by layer"]
ELEMENT_BYTES = 2
GROUPS = 3
"""Groups that the rings are sent in where they go early (§15.7)."""


@dataclass(frozen=True)
class Burst:
    """Bytes that may be sent from tick ``ready`` on."""

    ready: int
    nbytes: int


@dataclass(frozen=True)
class Sent:
    """One burst on the link: awake and sending in ``start .. end``; waking from ``begin`` to ``start``."""

    begin: int
    start: int
    end: int
    nbytes: int


@dataclass(frozen=True)
class Transfer:
    """What a link did with its bursts, in order."""

    sent: tuple[Sent, ...]

    @property
    def end(self) -> int:
        """The tick after the last byte; 0 where nothing was sent."""
        return self.sent[-1].end if self.sent else 0

    @property
    def wakes(self) -> int:
        """Times the link had been asleep (a delay of 0 is not counted)."""
        return sum(one.start > one.begin for one in self.sent)

    @property
    def nbytes(self) -> int:
        """All bytes."""
        return sum(one.nbytes for one in self.sent)


@dataclass(frozen=True)
class Link:
    """``rate`` bytes a tick, asleep at first and after ``idle_after`` ticks without a byte (§15.8).

    It takes ``wake`` ticks to wake.
    InputError where a parameter is no whole number of at least 1 (``wake``: 0).
    """

    rate: int = 1_000_000
    idle_after: int = 50
    wake: int = 30

    def __post_init__(self) -> None:
        for field in fields(self):
            low = 0 if field.name == "wake" else 1
            object.__setattr__(self, field.name, whole(field.name, getattr(self, field.name), low))

    def send(self, bursts: Iterable[Burst]) -> Transfer:
        """Send bursts one after another, in order of readiness; each takes whole ticks."""
        sent: list[Sent] = []
        for burst in sorted(bursts, key=lambda one: one.ready):
            free = sent[-1].end if sent else None
            begin = burst.ready if free is None else max(free, burst.ready)
            asleep = free is None or begin - free >= self.idle_after
            start = begin + self.wake * asleep
            sent.append(Sent(begin, start, start - (-burst.nbytes // self.rate), burst.nbytes))
        return Transfer(tuple(sent))


@dataclass(frozen=True)
class Prefill:
    """A prefill in chunks, layer after layer in each: when its rows are final (§15.8).

    A layer takes ``layer_ticks`` ticks in every chunk. A full plane's rows are
    final once written, a ring once the last chunk has passed its layer.
    InputError where a number is no whole number of at least 1.
    """

    tokens: int = 130_814
    chunk: int = 512
    layer_ticks: int = 10
    geometry: Geometry = MUSE_GLIMMER

    def __post_init__(self) -> None:
        for name in ("tokens", "chunk", "layer_ticks"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1))

    @property
    def chunks(self) -> int:
        """Chunks, the last one included."""
        return -(-self.tokens // self.chunk)

    @property
    def end(self) -> int:
        """The tick at which the last layer of the last chunk is done."""
        return self._done(self.chunks - 1, self.geometry.n_layers - 1)

    def _done(self, chunk: int, layer: int) -> int:
        return (chunk * self.geometry.n_layers + layer + 1) * self.layer_ticks

    def _rows(self, chunk: int) -> int:
        return min(self.chunk, self.tokens - chunk * self.chunk)

    def bursts(self, schedule: Schedule) -> tuple[Burst, ...]:
        """All bytes of the handoff, grouped by a schedule, none before its rows are final (§15.8).

        ``"held"``: everything once the prefill ends. ``"rings early"``: the rings in
        three groups during the last chunk, the full planes after it. ``"by
        chunk"``: a chunk's full rows when the chunk ends, the rings with the last.
        ``"by layer"``: each layer's rows as they become final. InputError for another name.
        """
        if schedule not in get_args(Schedule):
            raise InputError(
                f"schedule {schedule!r} was asked for; there are {', '.join(get_args(Schedule))}"
            )
        geometry = self.geometry
        token = 2 * geometry.kv_dim * ELEMENT_BYTES
        ring = min(self.tokens, geometry.sliding_window) * token
        last = self.chunks - 1
        early = schedule in ("rings early", "by layer")
        found: list[Burst] = []
        group = -(-len(geometry.sliding_layers) // GROUPS) if schedule == "rings early" else 1
        for first in range(0, len(geometry.sliding_layers), group):
            layers = geometry.sliding_layers[first : first + group]
            found.append(Burst(self._done(last, layers[-1]) if early else self.end, len(layers) * ring))
        for chunk in range(self.chunks):
            for layer in geometry.full_layers:
                ready = {
                    "by layer": self._done(chunk, layer),
                    "by chunk": self._done(chunk, geometry.n_layers - 1),
                }.get(schedule, self.end)
                found.append(Burst(ready, self._rows(chunk) * token))
        return _merged(found)


def _merged(bursts: list[Burst]) -> tuple[Burst, ...]:
    """Bursts that are ready at one tick, as one."""
    at: dict[int, int] = {}
    for burst in bursts:
        at[burst.ready] = at.get(burst.ready, 0) + burst.nbytes
    return tuple(Burst(ready, nbytes) for ready, nbytes in sorted(at.items()))
