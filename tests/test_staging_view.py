from __future__ import annotations

import base64
from typing import Any

import pytest

import muser_viz as mv

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = {"position": 2048, "chunk": 512, "window": 2048, "query": 0, "staged": False}


def state(view: mv.Staging) -> dict[str, Any]:
    return {name: getattr(view, name) for name in STATE}


def test_it_starts_with_the_chapter_s_chunk() -> None:
    view = mv.Staging()
    assert state(view) == {name: view.began[name] for name in STATE} == STATE
    assert view.sentence().startswith("stored first: query 2,048 sees tokens 1 to 2,048, 2,048 rows, and 511")
    assert len(view._esm) + len(view._css) <= 64_000


def test_show() -> None:
    view = mv.Staging(1800, 512)
    view.show(query=300, staged=True)
    assert state(view) == STATE | {"position": 1800, "query": 300, "staged": True}
    assert view.began["query"] == 0
    assert "finds them all in staged rows 53 to 2,100" in view.sentence()


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"position": -1}, "^position is -1"),
        ({"position": 2**32 - 511}, "end past"),
        ({"chunk": 0}, r"^chunk is 0; .*from 1 to 65536$"),
        ({"chunk": 65_537}, "^chunk is 65537"),
        ({"window": 0}, r"^window is 0; .*from 1 to 65536$"),
        ({"window": 2.0}, "^window is 2.0"),
        ({"query": 512}, r"^query is 512; .*from 0 to 511$"),
        ({"query": -1}, "^query is -1"),
        ({"staged": 1}, "^staged is 1; give True or False$"),
    ],
)
def test_a_refusal_changes_nothing(asked: dict[str, Any], refusal: str) -> None:
    view = mv.Staging()
    with pytest.raises(mv.InputError, match=refusal):
        view.show(**asked)
    assert state(view) == STATE
    with pytest.raises(mv.InputError, match=refusal):
        mv.Staging(**asked)


def test_another_name_is_refused() -> None:
    with pytest.raises(mv.InputError, match="^count is no setting; give position, chunk"):
        mv.Staging().show(count=3)


def test_three_forms() -> None:
    view = mv.Staging(6, 4, 8, query=2)
    data, about = view._repr_mimebundle_()
    assert VIEW in data
    wanted = mv.draw_staging(6, 4, 8, 2)
    assert data["text/plain"] == wanted.text
    assert wanted.text.endswith(view.sentence())
    assert base64.b64decode(data["image/png"]) == wanted.png
    assert about == {"image/png": {"alt": wanted.text}}
