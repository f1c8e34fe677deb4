from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

import muser_viz as mv
from muser_viz.sweeps import Sweep

VIEW = "application/vnd.jupyter.widget-view+json"
SWEPT = mv.seeded(4, 70, 8)


def test_five_numbers_a_rotation_go_out() -> None:
    view = mv.RotationSweep(SWEPT, 20)
    sweep = Sweep.of(SWEPT, 20)
    sent = np.frombuffer(view.rotations, "<u4").reshape(70, 5)
    assert sent[:, 0].tolist() == sweep.counts.tolist()
    assert sent[:, 1].tolist() == sweep.ulps.tolist()
    assert sent[:, 2].tolist() == sweep.index.tolist()
    assert np.array_equal(sent[:, 3].astype(np.uint32).view(np.float32), SWEPT[20][sweep.index])
    assert np.array_equal(sent[:, 4].astype(np.uint32).view(np.float32), SWEPT[np.arange(70), sweep.index])
    assert (view.own, view.width) == (20, 8)


def test_a_whole_sweep_in_few_bytes() -> None:
    view = mv.RotationSweep(np.zeros((2048, 8, 128), np.float32), 952)
    assert len(view.rotations) == 20 * 2048 <= 64_000
    assert view.picked == 952  # nothing differs: the own one


def test_what_is_picked_where_nothing_is_asked_for() -> None:
    view = mv.RotationSweep(SWEPT, 20)
    assert view.picked == np.abs(SWEPT.astype(np.float64) - SWEPT[20]).max(axis=1).argmax()
    assert view.began.items() >= {"picked": view.picked, "fold": 32, "measure": "words"}.items()


@pytest.mark.parametrize(("rotations", "fold"), [(2, 0), (15, 0), (16, 8), (40, 16), (70, 32), (300, 32)])
def test_the_fold_that_goes(rotations: int, fold: int) -> None:
    assert mv.RotationSweep(np.zeros((rotations, 2), np.float32), 0).fold == fold


@pytest.mark.parametrize("picked", [0, 20, 69])
def test_three_forms(picked: int) -> None:
    view = mv.RotationSweep(SWEPT, 20, picked, fold=8, measure="size")
    data, about = view._repr_mimebundle_()
    wanted = mv.draw_sweep(SWEPT, 20, picked, 8, "size")
    assert data[VIEW]["model_id"] == view.model_id
    assert data["text/plain"] == wanted.text == about["image/png"]["alt"]
    assert base64.b64decode(data["image/png"]) == wanted.png


def test_few_rotations_are_not_folded() -> None:
    view = mv.RotationSweep(SWEPT[:5], 2, 0)
    assert view.picture().text == mv.draw_sweep(SWEPT[:5], 2, 0).text
    assert "folded" not in view.picture().text


def test_show() -> None:
    view = mv.RotationSweep(SWEPT, 20)
    view.show(3)
    assert view.picked == 3
    assert "\npicked rotation 3: 8 words differ" in view.picture().text


@pytest.mark.parametrize("picked", [-1, 70, 1.0, True, "1"])
def test_rotations_that_are_not_there(picked: Any) -> None:
    view = mv.RotationSweep(SWEPT, 20, 1)
    for act in (lambda: view.show(picked), lambda: mv.RotationSweep(SWEPT, 20, picked)):
        with pytest.raises(mv.InputError, match=r"^picked is .*from 0 to 69$"):
            act()
    assert view.picked == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"swept": SWEPT.astype(np.float64)}, "give float32 of"),
        ({"swept": SWEPT[0]}, "give float32 of"),
        ({"swept": SWEPT * np.float32(np.inf)}, "infinities or NaNs"),
        ({"own": 70}, r"^own is 70.*from 0 to 69$"),
        ({"fold": 64}, "70 rotations fold by 8, 16, 32$"),
        ({"fold": 7}, "70 rotations fold by 8, 16, 32$"),
        ({"swept": SWEPT[:4], "own": 0, "fold": 8}, "4 rotations are too few to fold: leave it out"),
        ({"measure": "bits"}, "give one of words, size, ulp"),
    ],
)
def test_what_is_no_sweep(given: dict[str, Any], said: str) -> None:
    with pytest.raises(mv.InputError, match=said):
        mv.RotationSweep(**({"swept": SWEPT, "own": 20} | given))
