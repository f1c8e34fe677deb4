"""A notebook as one page: what is in it, and what cannot be."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import re
from typing import Any

import nbformat
import numpy as np
import pytest
from PIL import Image

import muser_viz as mv
from muser_viz import __version__
from muser_viz.lesson_page import STATE, VIEW, Lesson, index_page, lesson_page, sanitized

LESSONS = [
    Lesson("01-one", "1 · One", "Why?"),
    Lesson("02-two", "2 · <Two>", "What?"),
    Lesson("03-three", "3", ""),
]
ALIVE = re.compile(
    r"</?(section|div|pre|p|span|code|img|math|mtext)( (class|style|alt)=\"[^\"]*\")*>|"
    r"</a>|<a( href=\"(#|https:)[^\"]*\")?>"  # a link is followed by a click only
)
MODULE = "const word = '<b>';\nexport default { render({ el }) { el.textContent = word; } };\n"


def page_of(*cells: Any, state: dict[str, Any] | None = None, place: int = 1) -> str:
    notebook = nbformat.v4.new_notebook(cells=list(cells))
    if state is not None:
        notebook.metadata["widgets"] = {STATE: {"state": state}}
    return lesson_page(notebook, LESSONS, place)


def code(source: str, *outputs: Any) -> Any:
    return nbformat.v4.new_code_cell(source, outputs=list(outputs))


def shown(**data: Any) -> Any:
    return nbformat.v4.new_output(
        "execute_result", {key.replace("_", "/"): value for key, value in data.items()}
    )


def viewed(model: str, text: str = "as text") -> Any:
    return nbformat.v4.new_output(
        "display_data", {VIEW: {"model_id": model, "version_major": 2}, "text/plain": text}
    )


def widget(module: str = MODULE, **state: Any) -> dict[str, Any]:
    return {"model_module": "anywidget", "state": {"_esm": module, "_css": ".a {}", "layout": "x", **state}}


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<img src='https://example.org/a.png'>",
        "<a href='javascript:alert(1)'>x</a>",
        "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
        "<a href=' JaVaScRiPt:alert(1)'>x</a>",
        "<p onclick='alert(1)'>x</p>",
        "<iframe src='https://example.org'></iframe>",
        "<svg onload=alert(1)><script>1</script></svg>",
        "<style>@import 'https://example.org/a.css'</style>",
        "<p style='background: url(https://example.org/a.png)'>x</p>",
        "<link rel=stylesheet href='https://example.org/a.css'>",
        "<meta http-equiv=refresh content='0; url=https://example.org'>",
        "<form action='https://example.org'><button>x</button></form>",
        "<base href='https://example.org'>",
        "<math><mtext></p><img src=x onerror=alert(1)>",
    ],
)
def test_nothing_hostile_stays_alive(hostile: str) -> None:
    page = page_of(
        nbformat.v4.new_markdown_cell(f"text {hostile}\n\n{hostile}"),
        code(f"# {hostile}", shown(text_html=f"<div>{hostile}</div>"), shown(text_plain=hostile)),
        code("2", nbformat.v4.new_output("stream", text=f"{hostile}\x1b[31m{hostile}")),
        nbformat.v4.new_raw_cell(hostile),
    )
    body = page.split("<main>")[1].split("</main>")[0]
    for tag in re.findall(r"<[^>]*>", body):
        assert not re.search(r"javascript|data:|onerror|url\(|=\"x\"", tag), tag
        assert ALIVE.fullmatch(tag), tag


def test_a_ledger_s_table_stays() -> None:
    table = "<table><thead><tr><th style='text-align:left'>§ &lt;</th></tr></thead></table>"
    assert '<th style="text-align:left;">§ &lt;</th>' in sanitized(table)


def test_markdown_code_and_streams_are_readable() -> None:
    page = page_of(
        nbformat.v4.new_markdown_cell(
            "## Two `x < y`\n\n| a |\n|--|\n| 1 |\n\nNext: `03-three`, [one](01-one.ipynb#a)"
        ),
        code(
            "x = 1 < 2",
            nbformat.v4.new_output("stream", text="a"),
            nbformat.v4.new_output("stream", text="<b>"),
        ),
    )
    assert "<code>x &lt; y</code>" in page
    assert "<td>1</td>" in page
    assert '<a href="03-three.html"><code>03-three</code></a>' in page
    assert '<a href="01-one.html#a">one</a>' in page
    assert '<span class="mi">1</span> <span class="o">&lt;</span>' in page
    assert "<pre>a&lt;b&gt;</pre>" in page


def test_it_leads_to_its_neighbours_and_says_its_version() -> None:
    page = page_of(code("1"))
    assert "<title>2 · &lt;Two&gt; · muser-viz</title>" in page
    assert page.count('<a rel="prev" href="01-one.html">← 1 · One</a>') == 2
    assert page.count('<a rel="next" href="03-three.html">3 →</a>') == 2
    assert 'rel="prev"' not in page_of(code("1"), place=0)
    assert 'rel="next"' not in page_of(code("1"), place=2)
    assert f"muser-viz {__version__}, 02-two.ipynb" in page


def test_a_page_without_views_has_no_script() -> None:
    page = page_of(code("1"))
    assert "<script" not in page
    assert "script-src 'none'" in html.unescape(page)


def test_the_policy_lets_the_page_s_own_scripts_run_and_no_other() -> None:
    page = page_of(code("1", viewed("a")), state={"a": widget()})
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])  # type: ignore[index]
    scripts = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert policy == (
        f"default-src 'none'; script-src {hashes}; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_a_kind_s_module_is_there_once_and_models_that_are_shown() -> None:
    buffers = [{"path": ["steps"], "data": "AAE=", "encoding": "base64"}]
    state = {
        "x9": widget(step=3, text="</script><script>alert(1)</script>") | {"buffers": buffers},
        "x8": widget(step=4),
        "x7": widget(MODULE.replace("word", "other")),
        "hidden": widget(step=5),
        "layout": {"state": {"_model_name": "LayoutModel"}},
    }
    cells = [code("1", viewed(name, f"<{name}>")) for name in ("x9", "x8", "x9", "x7", "layout", "gone")]
    page = page_of(*cells, state=state)
    assert page.count("const word = '<b>';") == 1
    assert page.count("<style>.a {}</style>") == 1
    assert re.findall(r'data-model="(\w+)"', page) == ["m1", "m2", "m1", "m3"]
    found = re.search(r'id="mv-models">(.*?)</script>', page)
    models = json.loads(found[1])["models"]  # type: ignore[index]
    assert models["m1"] == {
        "view": "v1",
        "state": {"step": 3, "text": "</script><script>alert(1)</script>"},
        "buffers": [[["steps"], "AAE="]],
    }
    assert {name: model["view"] for name, model in models.items()} == {"m1": "v1", "m2": "v1", "m3": "v2"}
    for name in ("x9", "layout", "gone"):  # each is also there for a reader without scripts
        assert f"<pre>&lt;{name}&gt;</pre>" in page


@pytest.mark.parametrize(
    "module", ["const a = 1;", "export const a = 1;\nexport default a;", "export { a as default };"]
)
def test_a_module_that_cannot_be_inlined_is_refused(module: str) -> None:
    with pytest.raises(ValueError, match="must have one export, a default"):
        page_of(code("1", viewed("a")), state={"a": widget(module)})


@pytest.mark.parametrize("end", ["</script>", "</SCRIPT ", "<!--"])
def test_a_module_that_would_end_its_script_is_refused(end: str) -> None:
    with pytest.raises(ValueError, match="contains what would end it"):
        page_of(code("1", viewed("a")), state={"a": widget(MODULE + f"// {end}")})


def test_a_picture_is_made_small_and_comes_with_its_words() -> None:
    drawn = mv.draw_ring(mv.RingTrace.appends(mv.Ring(8), 4)).png
    page = page_of(code("1", shown(image_png=base64.b64encode(drawn).decode(), text_plain='2 < 3 "rows"')))
    source = re.search(r'<img alt="2 &lt; 3 &quot;rows&quot;" src="data:image/png;base64,([^"]+)">', page)
    assert source is not None
    small = base64.b64decode(source[1])
    assert len(small) < len(drawn) / 2
    before, after = (
        np.asarray(Image.open(io.BytesIO(of)).convert("RGB")).astype(int) for of in (drawn, small)
    )
    assert np.abs(before - after).max() <= 16
    assert "<summary>The picture in words</summary><pre>2 &lt; 3 &quot;rows&quot;</pre>" in page


@pytest.mark.parametrize(
    ("first", "title", "question"),
    [
        (
            "# 5 · The ring\n\nIt keeps `len` rows. **Which is next?** More.\n\nAnd?",
            "5 · The ring",
            "It keeps len rows. Which is next?",
        ),
        ("# A talk\n\nFor who gives it. **Before:** run.", "A talk", "For who gives it."),
        ("no heading", "stem", "no heading"),
        ("# only", "only", ""),
    ],
)
def test_title_and_question(first: str, title: str, question: str) -> None:
    cells = [nbformat.v4.new_code_cell("1"), nbformat.v4.new_markdown_cell(first)]
    assert Lesson.of("stem", nbformat.v4.new_notebook(cells=cells)) == Lesson("stem", title, question)


def test_the_index() -> None:
    page = index_page(LESSONS)
    assert '<a href="02-two.html">2 · &lt;Two&gt;</a><br>What?' in page
    assert "script-src 'none'" in html.unescape(page)
    assert __version__ in page
