from __future__ import annotations

import pytest

from muser_viz.views import words


def test_words_come_between_the_stage_and_the_view() -> None:
    script, style = words.front_with_words("bits_view")
    assert "import " not in script.replace("// ", "")
    places = [script.index(part) for part in ("function stage(", "const pairTable", "function render(")]
    assert places == sorted(places)
    assert script.count("export ") == 1
    assert ".mv-pair " in style
    assert style.index(".mv {") < style.index(".mv-bits-strip ")


def test_a_view_that_does_not_import_them() -> None:
    with pytest.raises(ValueError, match=r"ring_player.js must import the words once"):
        words.front_with_words("ring_player")
