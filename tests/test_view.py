from __future__ import annotations

import pytest

import muser_viz as mv
from muser_viz.views import view as module

EMPTY = mv.RingTrace.appends(4, 0)


def test_the_front_is_one_module_without_imports() -> None:
    esm, css = module.front("ring_player")
    assert "import " not in esm
    assert esm.count("export ") == 1
    assert "export default { render };" in esm
    assert "http" not in esm.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in css
    assert "@import" not in css


def test_a_module_that_does_not_share_is_refused() -> None:
    with pytest.raises(ValueError, match=r"stage\.js must import the shared module once"):
        module.front("stage")


def test_put_sends_state_also_where_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    player = mv.RingPlayer(EMPTY)
    sent: list[object] = []
    monkeypatch.setattr(player, "send_state", sent.append)
    player.put(step=-1)
    assert sent == [["step"]]


def test_a_tour_is_state_by_name() -> None:
    player = mv.RingPlayer(mv.RingTrace.appends(4, 9))
    assert player.tour({"step": 3}, {"step": 4, "mode": "grid"}) is player
    assert player.stops == [{"step": 3}, {"step": 4, "mode": "grid"}]
    for wrong, said in (
        ({"stride": 1}, "'stride' is no state of a RingPlayer: mode, speed, step"),
        ({"step": "4"}, "step is '4'; give int"),
        ({"step": True}, "step is True; give int"),
    ):
        with pytest.raises(mv.InputError, match=said):
            player.tour({"step": 0}, wrong)
    assert player.stops == [{"step": 3}, {"step": 4, "mode": "grid"}]
