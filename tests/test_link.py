from __future__ import annotations

from typing import Any, get_args

import pytest

import muser_viz as mv
from muser_viz.link import Burst, Link, Prefill, Schedule, Sent, Transfer

SCHEDULES = get_args(Schedule)
PAYLOAD = 1_823_184_896


def test_a_link_by_hand() -> None:
    link = Link(rate=10, idle_after=5, wake=3)
    sent = link.send([Burst(12, 10), Burst(0, 25), Burst(1, 1), Burst(13, 20)]).sent
    assert sent == (Sent(0, 3, 6, 25), Sent(6, 6, 7, 1), Sent(12, 15, 16, 10), Sent(16, 16, 18, 20))
    assert [
        Link(10, 6, 3).send([Burst(0, 25), Burst(11, 1)]).wakes,
        Link(10, 5, 3).send([Burst(0, 25), Burst(11, 1)]).wakes,
    ] == [1, 2]


def test_nothing_to_send() -> None:
    nothing = Link().send([])
    assert (nothing.end, nothing.wakes, nothing.nbytes) == (0, 0, 0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_sends_the_payload(schedule: Schedule) -> None:
    prefill = Prefill()
    bursts = prefill.bursts(schedule)
    assert sum(burst.nbytes for burst in bursts) == PAYLOAD
    assert all(0 < burst.ready <= prefill.end for burst in bursts)
    assert [b.ready for b in bursts] == sorted({b.ready for b in bursts})


def test_the_lesson_s_numbers() -> None:
    prefill = Prefill()
    assert (prefill.chunks, prefill.end) == (256, 133_120)
    table = {}
    for schedule in SCHEDULES:
        for wake in (30, 0):
            transfer = Link(wake=wake).send(prefill.bursts(schedule))
            table[schedule, wake] = (transfer.wakes, transfer.end - prefill.end)
    assert table == {
        ("held", 30): (1, 1854),
        ("held", 0): (0, 1824),
        ("rings early", 30): (3, 1790),
        ("rings early", 0): (0, 1760),
        ("by chunk", 30): (256, 116),
        ("by chunk", 0): (0, 86),
        ("by layer", 30): (1, 1),
        ("by layer", 0): (0, 1),
    }


def test_rings_leave_in_the_last_pass_only() -> None:
    prefill = Prefill(tokens=5_000)
    start = (prefill.chunks - 1) * 52 * 10
    token = 13_312
    early = prefill.bursts("rings early")
    assert [(b.ready - start, b.nbytes) for b in early] == [
        (170, 2_048 * token),
        (340, 2_048 * token),
        (510, 2_048 * token),
        (520, 5_000 * token),
    ]
    by_layer = prefill.bursts("by layer")
    assert all(b.nbytes == 512 * 1_024 for b in by_layer if b.ready <= start)
    assert sum(b.nbytes for b in by_layer if b.ready > start) == 39 * 2_048 * 1_024 + (5_000 % 512) * token


def test_a_short_prompt_has_short_rings() -> None:
    for schedule in SCHEDULES:
        bursts = Prefill(tokens=100).bursts(schedule)
        assert sum(b.nbytes for b in bursts) == mv.footprint(context=100).live


@pytest.mark.parametrize("bad", [{"rate": 0}, {"idle_after": 0}, {"wake": -1}, {"rate": 1.5}])
def test_what_is_no_link(bad: dict[str, Any]) -> None:
    with pytest.raises(mv.InputError, match="give a whole number"):
        Link(**bad)


def test_what_is_no_prefill() -> None:
    with pytest.raises(mv.InputError, match=r"^chunk is 0"):
        Prefill(chunk=0)
    with pytest.raises(mv.InputError, match="'soon' was asked for; there are held, rings early"):
        Prefill().bursts("soon")  # type: ignore[arg-type]


def test_a_transfer_is_a_value() -> None:
    assert Transfer(()) == Link().send([])
