from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

import muser_viz as mv

TRACE = mv.RingTrace.run(4, [0, 1, 9, 2], [None, None, None, 7])
VIEW = "application/vnd.jupyter.widget-view+json"


class Sent(mv.RingPlayer):
    """A player that keeps what it sends."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.sent: list[tuple[Any, list[bytes]]] = []
        super().__init__(*given, **named)

    def send(self, content: Any, buffers: Any = None) -> None:
        self.sent.append((content, buffers or []))


def test_a_trace_goes_out_once_in_few_bytes() -> None:
    player = mv.RingPlayer(mv.RingTrace.appends(2048, 4096))
    assert len(player.steps) == 16
    assert len(player.steps) + len(player._esm) + len(player._css) <= 64_000
    assert player.start == {"capacity": 2048, "len": 0, "origin_logical": 0, "origin_physical": 0}
    assert not player.live


def test_steps_are_packed_as_the_trace_packs_them() -> None:
    runs = np.frombuffer(mv.RingPlayer(TRACE).steps, np.uint32).reshape(-1, 4)
    assert runs.tolist() == [[0, 1, 2, 1], [9, 1, 1, 0], [2, 7, 1, 3]]


@pytest.mark.parametrize("step", range(-1, 4))
def test_three_forms(step: int) -> None:
    player = mv.RingPlayer(TRACE, step)
    data, about = player._repr_mimebundle_()
    wanted = mv.draw_ring(TRACE, step)
    assert data[VIEW]["model_id"] == player.model_id
    assert data["text/plain"] == TRACE.sentence(step) == about["image/png"]["alt"]
    assert base64.b64decode(data["image/png"]) == wanted.png


def test_show() -> None:
    player = mv.RingPlayer(TRACE)
    player.show(3)
    assert player.step == 3
    assert player._repr_mimebundle_()[0]["text/plain"] == TRACE.sentence(3)


@pytest.mark.parametrize("step", [-2, 4, 1.0, True, "1", None])
def test_steps_out_of_range_are_refused_and_change_nothing(step: Any) -> None:
    player = mv.RingPlayer(TRACE, 1)
    with pytest.raises(mv.InputError, match=r"^step is .*from -1 to 3$"):
        player.show(step)
    assert player.step == 1
    with pytest.raises(mv.InputError, match=r"^step is .*from -1 to 3$"):
        mv.RingPlayer(TRACE, step)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"source": 2048}, "a RingTrace or a KvPlane, not int"),
        ({"source": TRACE, "mode": "disc"}, "give 'ring' or 'grid'"),
        ({"source": TRACE, "speed": 5}, "give one of 1, 4, 15, 60, 240"),
        ({"source": TRACE, "feed": lambda _: None}, "only a KvPlane is fed"),
    ],
)
def test_other_input_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(mv.InputError, match=said):
        mv.RingPlayer(**given)


def test_the_state_it_began_with_is_what_r_brings_back() -> None:
    player = mv.RingPlayer(TRACE, 2, mode="grid", speed=60)
    player.show(0)
    assert player.began == {"step": 2, "mode": "grid", "speed": 60, "stop": -1}


def test_a_live_plane_stores_a_row_a_request() -> None:
    plane = mv.KvPlane(8, 1, 4)
    player = Sent(plane)
    assert player.live
    assert player.backend == plane.backend
    for position in range(11):
        player._received(None, {"op": "store"}, [])
        content, (key, value) = player.sent[-1]
        assert (content["op"], content["position"], content["row"]) == ("stored", position, position % 8)
        wanted = mv.seeded(position, 2, 4).astype(np.float16)
        assert key == wanted[0].tobytes() == plane.raw_key()[position % 8].tobytes()
        assert value == wanted[1].tobytes() == plane.raw_value()[position % 8].tobytes()
    assert plane.origin_logical == 3
    assert content["before"] == {"capacity": 8, "len": 8, "origin_logical": 2, "origin_physical": 2}


def test_a_feed_gives_the_rows() -> None:
    plane = mv.KvPlane(8, 1, 4)
    player = Sent(plane, feed=lambda p: (np.full(4, p, np.float32), np.full(4, -p, np.float32)))
    player._received(None, {"op": "store"}, [])
    player._received(None, {"op": "store"}, [])
    assert plane.raw_key()[1].tolist() == [1, 1, 1, 1]
    assert plane.raw_value()[1].tolist() == [-1, -1, -1, -1]


def test_what_the_plane_refuses_is_said_and_changes_nothing() -> None:
    plane = mv.KvPlane(8, 1, 4)
    player = Sent(plane, feed=lambda _: (np.zeros(3, np.float32), np.zeros(4, np.float32)))
    player._received(None, {"op": "store"}, [])
    assert player.sent[-1][0]["op"] == "refused"
    assert "InputError: key" in player.sent[-1][0]["text"]
    assert plane.len == 0


def test_an_error_in_the_feed_is_sent_to_be_shown() -> None:
    player = Sent(mv.KvPlane(8, 1, 4), feed=lambda _: 1 // 0)  # type: ignore[arg-type, return-value]
    player._received(None, {"op": "store"}, [])
    assert player.sent == [
        ({"op": "error", "text": "ZeroDivisionError: integer division or modulo by zero"}, [])
    ]


def test_a_message_that_a_trace_does_not_take_is_said() -> None:
    player = Sent(TRACE)
    player._received(None, {"op": "store"}, [])
    assert "takes no messages" in player.sent[-1][0]["text"]


def test_the_picture_of_a_live_plane_is_its_ring_now() -> None:
    plane = mv.KvPlane(8, 1, 4)
    player = Sent(plane)
    player._received(None, {"op": "store"}, [])
    assert player.picture().text == "start: len 1, origin_logical 0, origin_physical 0"
