"""One HTML file: head, contents, sections. Nothing in it asks a network for anything.

The policy in its head lets run and colour what is written here, by digest, and nothing else: not even a
name that got past the escaping could act.
"""

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from planner.page.html import Content, Html, markup, tag

_FOLDER = Path(__file__).parent


class Section(NamedTuple):
    name: str  # the anchor
    title: str
    content: Content


def document(title: str, lead: Content, sections: Sequence[Section], made_from: Content) -> str:
    """The text of the file. The same values give the same bytes."""
    style, script = (_text(name) for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", style),
    ]
    links = [tag("li", tag("a", one.title, href=f"#{one.name}")) for one in sections]
    body = [
        tag("a", "to the answer", href="#main", class_="skip"),
        tag("header", tag("h1", title), lead),
        tag("nav", tag("ol", links), aria_label="sections"),
        tag("main", map(_section, sections), id="main"),
        tag("footer", made_from),
        tag("script", script),
    ]
    page = tag("html", tag("head", head), tag("body", body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _section(one: Section) -> Html:
    heading = f"{one.name}-title"
    inside = [tag("h2", one.title, id=heading), one.content]
    return tag("section", inside, id=one.name, aria_labelledby=heading)


def _text(name: str) -> Html:
    """Ours, and without a `</`, so it is put in as it is."""
    text = (_FOLDER / name).read_text(encoding="utf-8")
    assert "</" not in text, name
    return Html(text)


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def paragraphs(*texts: Content) -> Html:
    return markup([tag("p", text) for text in texts if text])
