from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

import muser_viz as mv
from muser_viz import pictures
from muser_viz.pictures import Picture
from muser_viz.ring import Ring
from muser_viz.sweeps import Sweep
from muser_viz.word_pairs import pair_text

PNG = b"\x89PNG\r\n\x1a\n"

WITHOUT_PYPLOT = """
import sys
import numpy as np
import muser_viz as mv
from muser_viz import pictures
assert "matplotlib.pyplot" not in sys.modules
trace = mv.RingTrace.appends(8, 3)
mv.draw_ring(trace, 1)
mv.draw_bits(np.zeros(3, np.float32), np.ones(3, np.float32))
mv.draw_sweep(mv.seeded(1, 3, 4), 0)
mv.RingPlayer(trace)._repr_mimebundle_()
assert "matplotlib.pyplot" not in sys.modules
"""


class Drawn:
    """The figures that were drawn, to read their words."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []

    def words(self) -> str:
        return "\n".join(text.get_text() for text in self.figures[-1].findobj(Text) if text.get_text())


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[Drawn]:
    seen = Drawn()
    canvas = pictures.FigureCanvasAgg

    def kept(figure: Figure) -> Any:
        seen.figures.append(figure)
        return canvas(figure)

    monkeypatch.setattr(pictures, "FigureCanvasAgg", kept)
    yield seen
    seen.figures.clear()


def pixels(picture: Picture) -> np.ndarray:
    return np.array(Image.open(io.BytesIO(picture.png)).convert("RGBA"))


def numbers(text: str) -> list[str]:
    return re.findall(r"\d[\d,]*\d|\d", text)


def check_picture(picture: Picture) -> None:
    assert picture.png.startswith(PNG)
    image = pixels(picture)
    assert (image[..., 3] == 255).all()
    assert (image[0, 0] == 255).all()
    assert len(np.unique(image.view(np.uint32))) > 10
    assert repr(picture) == picture.text
    data, about = picture._repr_mimebundle_(include=None, exclude=None)
    assert base64.b64decode(data["image/png"]) == picture.png
    assert data["text/plain"] == picture.text
    assert about == {"image/png": {"alt": picture.text}}


@pytest.mark.parametrize("capacity", [1, 8, 2048])
def test_a_ring_is_a_picture_and_a_sentence(capacity: int, drawn: Drawn) -> None:
    trace = mv.RingTrace.appends(capacity, capacity + 3)
    for step in (-1, capacity + 1):
        picture = mv.draw_ring(trace, step)
        check_picture(picture)
        assert picture.text == trace.sentence(step)
        assert set(numbers(picture.text)) <= set(numbers(drawn.words()))
        assert f"next token\n{trace.ring(step).next_position:,}" in drawn.words()


def test_every_row_of_a_small_ring_is_named(drawn: Drawn) -> None:
    mv.draw_ring(mv.RingTrace.appends(8, 13), 9)
    words = drawn.words().splitlines()
    for row, token in enumerate([8, 9, 2, 3, 4, 5, 6, 7]):
        assert f"row {row}" in words
        assert f"token {token}" in words
        assert str(token) in words
    assert words.count("W written") == 1
    assert words.count("F front") == 1
    assert {"W", "F"} <= set(words)


def test_rows_near_the_write_of_a_large_ring_are_named(drawn: Drawn) -> None:
    mv.draw_ring(mv.RingTrace.appends(2048, 2051), 2048)
    words = drawn.words().splitlines()
    for row, token in ((2047, 2047), (0, 2048), (1, 1)):
        assert f"row {row:,}" in words
        assert f"token {token:,}" in words
    assert words.count("W written") == 1
    assert {"0", "512", "1,024", "1,536"} <= set(words)


def test_an_empty_trace_is_an_empty_ring(drawn: Drawn) -> None:
    picture = mv.draw_ring(mv.RingTrace.appends(8, 0))
    check_picture(picture)
    assert picture.text == "start: len 0, origin_logical 0, origin_physical 0"
    words = drawn.words().splitlines()
    assert (words.count("empty"), words.count("-")) == (8, 8)
    assert not {"W", "F", "W written", "F front"} & set(words)


def test_a_refusal_marks_no_written_row(drawn: Drawn) -> None:
    picture = mv.draw_ring(mv.RingTrace.run(Ring(8, len=8), [9]), 0)
    check_picture(picture)
    words = drawn.words()
    assert "append 9: refused, 8 is next" in words
    assert "W written" not in words
    assert "F front" in words


@pytest.mark.parametrize(("count", "written"), [(0, 0), (3, 3), (30, 8)])
def test_a_chunk_marks_the_rows_it_wrote(count: int, written: int, drawn: Drawn) -> None:
    trace = mv.RingTrace.run(Ring(8, len=8, origin_physical=5), [8], [count])
    picture = mv.draw_ring(trace, 0)
    check_picture(picture)
    assert drawn.words().count("W written") == written
    assert picture.text == trace.sentence(0)


@pytest.mark.parametrize("capacity", [8, 2048])
def test_another_step_has_other_pixels(capacity: int) -> None:
    trace = mv.RingTrace.appends(capacity, capacity + 2)
    images = [pixels(mv.draw_ring(trace, step)) for step in (-1, capacity, capacity + 1)]
    for i, image in enumerate(images):
        for other in images[:i]:
            assert image.shape == other.shape
            assert (image != other).any(axis=2).sum() > 100


def test_the_same_step_has_the_same_pixels() -> None:
    trace = mv.RingTrace.appends(8, 3)
    assert mv.draw_ring(trace, 2).png == mv.draw_ring(trace, 2).png


@pytest.mark.parametrize("step", [-2, 3, 1.0, True])
def test_a_step_outside_the_trace(step: Any) -> None:
    with pytest.raises(mv.InputError, match=r"^step is .*from -1 to 2$"):
        mv.draw_ring(mv.RingTrace.appends(8, 3), step)


@pytest.mark.parametrize(
    ("dtype", "one", "two"), [(np.float16, "3c00", "4000"), (np.float32, "3f800000", "40000000")]
)
def test_differing_words_are_shown_bit_by_bit(dtype: type, one: str, two: str, drawn: Drawn) -> None:
    a, b = np.ones(2000, dtype), np.ones(2000, dtype)
    b[[3, 1500]] = 2
    picture = mv.draw_bits(a, b, ("ring", "packed"))
    check_picture(picture)
    assert picture.text.splitlines() == [
        "2 of 2,000 words differ",
        f"ring[3] 0x{one}  packed[3] 0x{two}",
        f"ring[1500] 0x{one}  packed[1500] 0x{two}",
    ]
    words = drawn.words().splitlines()
    assert "2 of 2,000 words differ (marked)" in words
    assert {"ring[3]", "packed[3]", "ring[1,500]", "packed[1,500]", "sign", "exponent", "mantissa"} <= set(
        words
    )
    bits = "".join(word for word in words if word in {"0", "1"})
    width = 4 * len(one)
    assert f"{int(one, 16):0{width}b}{int(two, 16):0{width}b}" * 2 in bits
    flipped = (int(one, 16) ^ int(two, 16)).bit_count()
    marked = [text for text in drawn.figures[-1].findobj(Text) if text.get_bbox_patch()]
    assert len(marked) == 2 * 2 * flipped


def test_equal_arrays_differ_nowhere(drawn: Drawn) -> None:
    picture = mv.draw_bits(np.ones(5, np.float32), np.ones(5, np.float32))
    check_picture(picture)
    assert picture.text == "0 of 5 words differ"
    assert "0 of 5 words differ (marked)" in drawn.words()


def test_no_more_words_than_asked_for() -> None:
    a = mv.seeded(1, 4, 5).astype(np.float16)
    assert len(mv.draw_bits(a, -a).text.splitlines()) == 1 + 6
    picture = mv.draw_bits(a, -a, shown=2)
    assert picture.text.startswith("20 of 20 words differ\n")
    assert len(picture.text.splitlines()) == 1 + 2


def test_a_word_asked_for_comes_first_then_the_differing_ones_after_it(drawn: Drawn) -> None:
    a, b = np.ones(2000, np.float32), np.ones(2000, np.float32)
    b[[3, 700, 1500, 1999]] = 2
    picture = mv.draw_bits(a, b, ("ring", "packed"), shown=2, index=700)
    check_picture(picture)
    assert picture.text.splitlines() == [
        "4 of 2,000 words differ",
        pair_text(("ring", "packed"), 700, a[700], b[700]),
        "ring[1500] 0x3f800000  packed[1500] 0x40000000",
    ]
    words = drawn.words().splitlines()
    assert {"700", "ring[700]", "packed[1,500]"} <= set(words)
    assert not {"ring[3]", "ring[1,999]"} & set(words)
    equal = mv.draw_bits(a, b, index=1998).text.splitlines()
    assert equal[1:] == [
        "word 1,998: 0x3f800000 = 1, the same bits in a and b",
        "a[1999] 0x3f800000  b[1999] 0x40000000",
    ]


@pytest.mark.parametrize("index", [-1, 5, 1.0, True])
def test_a_word_that_is_not_there(index: Any) -> None:
    with pytest.raises(mv.InputError, match=r"^index is .*from 0 to 4$"):
        mv.draw_bits(np.zeros(5, np.float32), np.ones(5, np.float32), index=index)


@pytest.mark.parametrize("size", [1, 799, 800, 801, 5000, 200_001])
def test_no_differing_word_is_lost_from_the_strip(size: int) -> None:
    for at in {0, size // 2, size - 1}:
        mask = np.zeros(size, np.bool_)
        mask[at] = True
        lit = np.flatnonzero(pictures._strip(mask).any(axis=0))
        bins = min(size, 800)
        assert len(lit) == 1
        assert lit[0] * size // bins <= at < (lit[0] + 1) * size // bins
    assert pictures._strip(np.ones(size, np.bool_)).all()
    assert not pictures._strip(np.zeros(size, np.bool_)).any()


def test_bits_of_single_numbers_and_of_nans() -> None:
    assert mv.draw_bits(np.float32(0.0), np.float32(-0.0)).text == (
        "1 of 1 words differ\na[0] 0x00000000  b[0] 0x80000000"
    )
    nan = np.array([np.nan], np.float32)
    assert mv.draw_bits(nan, nan).text == "0 of 1 words differ"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros(3, np.float32), np.zeros(4, np.float32)),
        (np.zeros(3, np.float32), np.zeros(3, np.float16)),
        (np.zeros(3), np.zeros(3)),
    ],
)
def test_bits_of_unlike_arrays(a: np.ndarray, b: np.ndarray) -> None:
    with pytest.raises(mv.InputError, match="bits are compared of"):
        mv.draw_bits(a, b)


@pytest.mark.parametrize("shown", [0, 17, 1.0, True])
def test_what_is_no_number_of_words_to_show(shown: Any) -> None:
    with pytest.raises(mv.InputError, match=r"^shown is .*from 1 to 16$"):
        mv.draw_bits(np.zeros(3, np.float32), np.ones(3, np.float32), shown=shown)


def test_a_sweep_counts_words_and_steps(drawn: Drawn) -> None:
    swept = np.ones((5, 2, 3), np.float32)
    swept[1, 0, 0] = np.nextafter(np.float32(1), np.float32(2))
    swept[3] += 2.0**-20
    picture = mv.draw_sweep(swept, 2)
    check_picture(picture)
    lines = picture.text.splitlines()
    assert lines[0] == "5 rotations, 6 words each"
    assert lines[1] == "own rotation 2: 0 words differ"
    assert lines[2].startswith("others: 0 to 6 words differ, at most 9.5e-07, 8 ULP")
    assert lines[3].endswith(" 3")
    words = drawn.words()
    assert "6 words read at each of 5 rotations" in words
    assert "own rotation 2" in words


def test_a_picked_rotation_and_a_fold_are_told_and_shown(drawn: Drawn) -> None:
    swept = mv.seeded(3, 70, 6)
    sweep = Sweep.of(swept, 2)
    picture = mv.draw_sweep(swept, 2, picked=9, fold=8, measure="size")
    check_picture(picture)
    assert picture.text == "\n".join([sweep.summary(), sweep.said(9), sweep.folded("size", 8)])
    words = drawn.words().splitlines()
    assert {" picked 9", " own rotation 2", "rotation modulo 8", "largest difference"} <= set(words)
    assert mv.draw_sweep(swept, 2, picked=2).text.endswith("\npicked rotation 2: the own one")
    check_picture(mv.draw_sweep(np.ones((20, 3), np.float32), 0, 3, 8))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"picked": 5}, r"^picked is 5.*from 0 to 4$"),
        ({"fold": 3}, r"^fold is 3.*from 1 to 2$"),
        ({"measure": "bits"}, "give one of words, size, ulp"),
    ],
)
def test_what_a_sweep_cannot_show(given: dict[str, Any], said: str) -> None:
    with pytest.raises(mv.InputError, match=said):
        mv.draw_sweep(mv.seeded(3, 5, 6), 0, **given)


def test_the_own_rotation_is_none_of_the_others() -> None:
    swept = np.arange(12, dtype=np.float32).reshape(4, 3)
    picture = mv.draw_sweep(swept, 2)
    assert "own rotation 2: 0 words differ\nothers: 3 to 3 words differ" in picture.text


def test_a_sweep_without_an_effect() -> None:
    picture = mv.draw_sweep(np.ones((4, 3), np.float32), 0)
    check_picture(picture)
    assert "others: 0 to 0 words differ, at most 0.0e+00, 0 ULP" in picture.text


@pytest.mark.parametrize("shape", [(), (4,), (0, 3), (1, 3), (2, 0)])
def test_what_is_no_sweep(shape: tuple[int, ...]) -> None:
    with pytest.raises(mv.InputError, match=rf"^swept is float32 of shape {re.escape(str(shape))}; "):
        mv.draw_sweep(np.zeros(shape, np.float32), 0)


def test_a_sweep_of_other_numbers() -> None:
    with pytest.raises(mv.InputError, match="float64"):
        mv.draw_sweep(np.zeros((2, 2)), 0)
    with pytest.raises(mv.InputError, match="infinities"):
        mv.draw_sweep(np.full((2, 2), np.inf, np.float32), 0)


def test_bits_of_nothing() -> None:
    with pytest.raises(mv.InputError, match="empty"):
        mv.draw_bits(np.zeros(0, np.float32), np.zeros(0, np.float32))


@pytest.mark.parametrize("own", [-1, 4, 1.0, True, None])
def test_what_is_no_own_rotation(own: Any) -> None:
    with pytest.raises(mv.InputError, match=r"^own is .*from 0 to 3$"):
        mv.draw_sweep(np.zeros((4, 3), np.float32), own)


def test_no_pyplot_state_is_made() -> None:
    root = Path(mv.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYPLOT], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
