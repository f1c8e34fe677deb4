from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

import muser_viz as mv
from muser_viz.threads import StoreLaunch

VIEW = "application/vnd.jupyter.widget-view+json"
COLUMNS = ("source_row", "element", "source", "row", "cell")


def launch_of(head_major: bool = False, count: int | None = 3, held: int = 4) -> StoreLaunch:
    plane = mv.KvPlane(5, 2, 2, head_major)
    plane.append_batch(0, mv.seeded(1, held, 4), mv.seeded(2, held, 4))
    return mv.store_launch(plane, count)


@pytest.mark.parametrize("past", [0, 4, 5])
@pytest.mark.parametrize("count", [None, 3, 7])
def test_what_is_sent_is_what_the_threads_do(count: int | None, past: int) -> None:
    launches = launch_of(count=count), launch_of(True, count)
    view = mv.StoreView(*launches, past=past)
    assert view.count == launches[0].grid + past
    packed = np.frombuffer(view.threads, "<f8").reshape(2, view.count, len(COLUMNS))
    for launch, sent in zip(launches, packed, strict=True):
        table = launch.threads(view.count)
        for column, name in enumerate(COLUMNS):
            assert sent[:, column].tolist() == table[name].tolist()
    assert len(view.threads) + len(view._esm) + len(view._css) <= 64_000


def test_what_the_kernel_is_told_is_sent() -> None:
    one, batch = mv.StoreView(launch_of(count=None)), mv.StoreView(launch_of(True))
    assert one.told == [
        {
            "kernel": "muser_kv_store_f16",
            "name": "token-major",
            "head_major": False,
            "scalars": {"kv_dim": 4, "write_index": 4},
            "capacity": 5,
            "n_kv_heads": 2,
            "head_dim": 2,
        }
    ]
    assert batch.told[0]["scalars"] == launch_of(True).scalars


@pytest.mark.parametrize("step", [-1, 0, 5, 11, 12, 15, 16])
def test_three_forms(step: int) -> None:
    launches = launch_of(), launch_of(True)
    view = mv.StoreView(*launches, step=step)
    wanted = mv.draw_threads(*launches, past=4, step=step)
    data, about = view._repr_mimebundle_()
    assert data[VIEW]["model_id"] == view.model_id
    assert data["text/plain"] == wanted.text == about["image/png"]["alt"]
    assert base64.b64decode(data["image/png"]) == wanted.png


def test_show() -> None:
    view = mv.StoreView(launch_of())
    assert view.began["step"] == -1
    view.show(16)
    assert view.step == 16
    assert view.picture().text.startswith("all at once: 12 threads store, 4 past the guard do nothing\n")


@pytest.mark.parametrize("step", [-2, 17, 1.0, True, None])
def test_steps_out_of_range_are_refused_and_change_nothing(step: Any) -> None:
    view = mv.StoreView(launch_of(), step=3)
    with pytest.raises(mv.InputError, match=r"^step is .*from -1 to 16$"):
        view.show(step)
    assert view.step == 3
    with pytest.raises(mv.InputError, match=r"^step is .*from -1 to 16$"):
        mv.StoreView(launch_of(), step=step)


@pytest.mark.parametrize(
    ("launches", "past", "said"),
    [
        ((), 4, "no launch was given"),
        (("launch",), 4, "a launch is drawn, mv.store_launch.*, not str"),
        ((launch_of(),), -1, "past is -1"),
        ((launch_of(),), 21, "33 threads or cells"),
        ((launch_of().but(source_count=0),), 4, "stores nothing"),
        ((launch_of(count=None).but(write_index=5),), 4, "would write cell 23 of 20"),
        ((launch_of().but(source_count=6),), 4, "two threads would write one cell"),
        ((launch_of(), launch_of(count=2)), 4, "threads differ in source_row"),
        ((launch_of(), launch_of(held=3)), 4, "threads differ in row"),
    ],
)
def test_other_input_is_refused(launches: tuple[Any, ...], past: int, said: str) -> None:
    with pytest.raises(mv.InputError, match=said):
        mv.StoreView(*launches, past=past)
