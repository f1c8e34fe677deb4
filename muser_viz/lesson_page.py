"""An executed notebook as one HTML page that needs no kernel, no server and no network."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import jinja2
from bleach.css_sanitizer import CSSSanitizer
from bleach.sanitizer import Cleaner
from markupsafe import Markup
from nbconvert.filters import Highlight2HTML, ansi2html, markdown2html
from PIL import Image

from muser_viz import __version__

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
GENERATOR = '<meta name="generator" content="muser-viz '
"""What every page that an export writes has in its head."""

_TAGS = frozenset(
    "a abbr b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img li ol p pre "  # noqa: SIM905
    "s small span strong sub summary sup table tbody td th thead tr ul".split()
)


def _allowed(tag: str, name: str, value: str) -> bool:
    """Whether a tag may have an attribute: nothing that runs, and nothing that is fetched."""
    if tag == "a" and name == "href":
        return re.match(r"(https?:|mailto:|#)|[\w./%-]+(#|$)", value) is not None
    if tag == "img" and name == "src":
        return re.match(r"data:image/(png|jpeg|gif);base64,", value) is not None
    by_tag = {"img": ("alt",), "ol": ("start",), "td": ("colspan", "rowspan"), "th": ("colspan", "rowspan")}
    return name in ("class", "id", "title", "style", *by_tag.get(tag, ()))


def sanitized(page: str) -> Markup:
    """HTML in which nothing runs and nothing is fetched; a tag that could is shown as text."""
    cleaner = Cleaner(
        tags=_TAGS,
        attributes=_allowed,
        protocols=["http", "https", "mailto", "data"],
        css_sanitizer=CSSSanitizer(allowed_css_properties=["text-align"]),
    )
    return Markup(cleaner.clean(page))


@dataclass(frozen=True)
class Lesson:
    """What the index and the neighbours say of a lesson."""

    stem: str
    title: str
    question: str

    @property
    def page(self) -> str:
        """The name of its page."""
        return f"{self.stem}.html"

    @classmethod
    def of(cls, stem: str, notebook: Any) -> Lesson:
        """Its title: the first heading. Its question: all up to a question mark, or one sentence."""
        first = next((cell.source for cell in notebook.cells if cell.cell_type == "markdown"), "")
        plain = re.sub(r"[`*]", "", first)
        heading = re.search(r"^#+ +(.+)$", plain, re.MULTILINE)
        paragraph = re.search(r"^(?!#)\S[^?\n]*\?|^(?!#)\S.*?(\.|$)", plain, re.MULTILINE)
        return cls(stem, heading[1].strip() if heading else stem, paragraph[0] if paragraph else "")


class _Views:
    """The models that a page shows, and the modules and styles of their kinds, each once."""

    def __init__(self, notebook: Any) -> None:
        self._state = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
        self._named: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self.models: dict[str, Any] = {}
        self.styles: list[str] = []
        self.scripts: list[str] = []

    def model(self, id: str) -> str:
        """The name in the page of a widget that has a module; "" for another one."""
        held = self._state.get(id, {})
        state = held.get("state", {})
        if "_esm" not in state:
            return ""
        if id not in self._named:
            self._named[id] = f"m{len(self._named) + 1}"
            self.models[self._named[id]] = {
                "view": self._kind(state["_esm"], state.get("_css", "")),
                "state": {
                    k: v
                    for k, v in state.items()
                    if k[0] != "_" and k not in ("layout", "tabbable", "tooltip")
                },
                "buffers": [[buffer["path"], buffer["data"]] for buffer in held.get("buffers", [])],
            }
        return self._named[id]

    def _kind(self, module: str, style: str) -> str:
        if module not in self._kinds:
            exported = re.findall(r"^export .*", module, re.MULTILINE)
            if len(exported) != 1 or not exported[0].startswith("export default "):
                raise ValueError(f"a view's module must have one export, a default; got {exported}")
            name = self._kinds[module] = f"v{len(self._kinds) + 1}"
            self.scripts.append(
                module.replace("export default ", f"(globalThis.muserViews ??= {{}}).{name} = ")
            )
            if style not in self.styles:
                self.styles.append(style)
        return self._kinds[module]


def _printed(text: str) -> Markup:
    """What a cell printed, with the terminal's colours as classes."""
    return Markup(f"<pre>{ansi2html(text)}</pre>")  # type: ignore[no-untyped-call]


def _small(png: bytes) -> bytes:
    """The picture in 256 colours, which drawn pictures hardly exceed: a third of the bytes."""
    reduced = io.BytesIO()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(reduced, "PNG", optimize=True)
    return min(png, reduced.getvalue(), key=len)


def _output(output: Any, views: _Views) -> dict[str, Any]:
    """An output as HTML, and the model that is shown in its place where scripts run."""
    if output.output_type in ("stream", "error"):
        printed = output.text if output.output_type == "stream" else "\n".join(output.traceback)
        return {"html": _printed(printed), "model": ""}
    data = output.data
    text = data.get("text/plain", "")
    if "text/html" in data:
        html = sanitized(data["text/html"])
    elif "image/png" in data:
        png = base64.b64encode(_small(base64.b64decode(data["image/png"]))).decode()
        html = Markup(
            f'<img alt="{escape(text)}" src="data:image/png;base64,{png}">'
            f"<details><summary>The picture in words</summary><pre>{escape(text)}</pre></details>"
        )
    else:
        html = _printed(text)
    return {"html": html, "model": views.model(data.get(VIEW, {}).get("model_id", ""))}


def joined(outputs: Sequence[Any]) -> list[Any]:
    """Outputs with consecutive pieces of one stream as one: how a kernel flushes is a matter of time."""
    whole: list[Any] = []
    for output in outputs:
        if whole and output.output_type == "stream" and whole[-1].get("name") == output.name:
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole


def _cell(cell: Any, views: _Views, linked: Callable[[str], str]) -> dict[str, Any]:
    if cell.cell_type == "markdown":
        return {"kind": "text", "html": Markup(linked(str(sanitized(markdown2html(cell.source)))))}
    if cell.cell_type == "raw":
        return {"kind": "text", "html": Markup(f"<pre>{escape(cell.source)}</pre>")}
    code = Highlight2HTML(pygments_lexer="ipython3")(cell.source)  # type: ignore[no-untyped-call]
    return {
        "kind": "code",
        "html": sanitized(code),
        "outputs": [_output(output, views) for output in joined(cell.outputs)],
    }


def _asset(name: str) -> str:
    return (files("muser_viz") / "site" / name).read_text(encoding="utf-8")


def _filled(template: str, **values: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template(template).render(version=__version__, **values)


def _raw(text: str, tag: str) -> Markup:
    """Text for a script or style element, in which nothing is escaped and only its end tag ends it."""
    if re.search(rf"</{tag}|<!--", text, re.IGNORECASE):
        raise ValueError(f"a {tag} of the page contains what would end it: {text[:80]!r}")
    return Markup(text)


def _policy(scripts: Sequence[str]) -> str:
    """Scripts: these and no others. Styles: any in the page (views set them on elements). No connection."""
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts]
    return (
        f"default-src 'none'; script-src {' '.join(hashes) or chr(39) + 'none' + chr(39)}; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def lesson_page(notebook: Any, lessons: Sequence[Lesson], place: int) -> str:
    """The page of ``lessons[place]``: its executed ``notebook``, with the state of its widgets (nbformat 4).

    Markdown and HTML outputs are sanitized, all else is escaped. A widget is its still
    (picture, HTML or text) until its module has drawn; a kind's module is in the page once.
    """
    stems = "|".join(re.escape(lesson.stem) for lesson in lessons)

    def linked(page: str) -> str:
        page = re.sub(rf'href="({stems})\.ipynb', r'href="\1.html', page)
        return re.sub(rf"<code>({stems})</code>", r'<a href="\1.html"><code>\1</code></a>', page)

    views = _Views(notebook)
    cells = [_cell(cell, views, linked) for cell in notebook.cells if cell.source.strip()]
    scripts = [*views.scripts, _asset("host.js")] if views.models else []
    return _filled(
        "page.html",
        policy=_policy(scripts),
        title=lessons[place].title,
        notebook=f"{lessons[place].stem}.ipynb",
        before=lessons[place - 1] if place else None,
        after=lessons[place + 1] if place + 1 < len(lessons) else None,
        styles=[_raw(style, "style") for style in (_asset("page.css"), *views.styles)],
        cells=cells,
        models=Markup(json.dumps({"models": views.models}).replace("<", "\\u003c")) if views.models else "",
        scripts=[_raw(script, "script") for script in scripts],
    )


def index_page(lessons: Sequence[Lesson]) -> str:
    """The page that links the lessons, each with its question."""
    return _filled(
        "index.html",
        policy=_policy(()),
        title="The lessons",
        styles=[_raw(_asset("page.css"), "style")],
        lessons=lessons,
    )
