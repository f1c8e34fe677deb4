"""The browser's part of views that show words bit by bit: words.js and words.css before their own."""

from __future__ import annotations

from importlib.resources import files

from muser_viz.views.view import front

_IMPORTED = 'import { pairText, pairTable, power, floatOf } from "./words.js";\n'


def front_with_words(name: str) -> tuple[str, str]:
    """``front``, with what words.js exports to the view."""
    here = files("muser_viz.views")
    own, style = front(name)
    if own.count(_IMPORTED) != 1:
        raise ValueError(f"{name}.js must import the words once: {_IMPORTED.strip()}")
    stage, view = own.split(_IMPORTED)
    words = (
        (here / "words.js")
        .read_text(encoding="utf-8")
        .replace('import { make, number } from "./stage.js";\n', "")
    )
    return stage + words.replace("export ", "") + view, style + "\n" + (here / "words.css").read_text(
        encoding="utf-8"
    )
