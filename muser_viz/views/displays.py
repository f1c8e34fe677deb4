"""Which cell shows which widget: one that a re-run replaced is closed, so that none piles up."""

from __future__ import annotations

from typing import Any

_shown: dict[str, list[Any]] = {}
_before: dict[str, list[Any]] = {}
_run: dict[str, str] = {}
_watched: list[Any] = []


def displayed(widget: Any) -> None:
    """Note that ``widget`` is shown by the cell that runs now; outside a notebook nothing is noted."""
    shell = _shell()
    if shell is None:
        return
    parent = shell.get_parent()
    cell = parent.get("metadata", {}).get("cellId")
    run = parent.get("header", {}).get("msg_id")
    if cell is None:
        return
    if _run.get(cell) != run:
        _run[cell], _before[cell] = run, _shown.get(cell, [])
        _shown[cell] = []
    _shown[cell].append(widget)
    if shell not in _watched:
        _watched.append(shell)
        shell.events.register("post_run_cell", lambda *_: close_replaced())


def close_replaced() -> None:
    """Close what the cells that ran showed before and no cell shows now."""
    before = [widget for widgets in _before.values() for widget in widgets]
    _before.clear()
    now = [widget for widgets in _shown.values() for widget in widgets]
    for widget in before:
        if not any(widget is other for other in now):
            widget.close()


def _shell() -> Any:
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return shell if hasattr(shell, "get_parent") else None
