from __future__ import annotations

import muser_viz as mv


def test_every_backend_is_drawn_and_the_text_is_no_machines_own() -> None:
    picture = mv.draw_backends()
    assert picture.png.startswith(b"\x89PNG")
    assert picture.text == "backends, the preferred first: metal, cuda, host, numpy"
