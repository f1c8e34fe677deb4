from __future__ import annotations

from typing import Any

import pytest

from muser_viz.views import displays


class Shell:
    """As much of a notebook's shell as displays asks of it."""

    def __init__(self) -> None:
        self.parent: dict[str, Any] = {}
        self.after: list[Any] = []
        self.events = self

    def get_parent(self) -> dict[str, Any]:
        return self.parent

    def register(self, event: str, act: Any) -> None:
        assert event == "post_run_cell"
        self.after.append(act)

    def run(self, cell: str | None, message: str, *widgets: Any) -> None:
        self.parent = {"metadata": {} if cell is None else {"cellId": cell}, "header": {"msg_id": message}}
        for widget in widgets:
            displays.displayed(widget)
        for act in self.after:
            act()


class Widget:
    open = True

    def close(self) -> None:
        self.open = False


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    running = Shell()
    monkeypatch.setattr(displays, "_shell", lambda: running)
    for name in ("_shown", "_before", "_run"):
        monkeypatch.setattr(displays, name, {})
    monkeypatch.setattr(displays, "_watched", [])
    return running


def test_a_re_run_closes_what_it_replaced(shell: Shell) -> None:
    widgets = [Widget() for _ in range(20)]
    for run, widget in enumerate(widgets):
        shell.run("a", str(run), widget)
    assert [w.open for w in widgets] == [False] * 19 + [True]
    assert len(shell.after) == 1


def test_what_is_shown_again_or_elsewhere_stays(shell: Shell) -> None:
    kept, elsewhere, gone = Widget(), Widget(), Widget()
    shell.run("a", "1", kept, elsewhere, gone)
    shell.run("b", "2", elsewhere)
    shell.run("a", "3", kept)
    assert (kept.open, elsewhere.open, gone.open) == (True, True, False)
    shell.run("b", "4")
    shell.run("b", "5", Widget())
    assert not elsewhere.open


def test_two_of_one_cell_are_both_kept(shell: Shell) -> None:
    first, second = Widget(), Widget()
    shell.run("a", "1", first, second)
    assert first.open
    assert second.open


def test_without_a_cell_nothing_is_closed(shell: Shell) -> None:
    widget = Widget()
    shell.run(None, "1", widget)
    shell.run(None, "2", Widget())
    assert widget.open
