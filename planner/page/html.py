"""Markup as values: what is put into a tag is escaped unless it is markup already.

A page quotes names and texts of files that others wrote, so there is no other way to make markup here.
"""

from collections.abc import Iterable
from html import escape
from typing import Any

VOID = ("meta", "br", "input", "hr")


class Html(str):
    """Text that is markup."""

    __slots__ = ()


Content = Any  # Html, anything that is shown as text, None for nothing, or an iterable of these


def markup(content: Content) -> Html:
    """
    >>> markup(["a < b", None, tag("b", 1)])
    'a &lt; b<b>1</b>'
    """
    if isinstance(content, Html):
        return content
    if content is None:
        return Html("")
    if isinstance(content, Iterable) and not isinstance(content, str):
        return Html("".join(map(markup, content)))
    return Html(escape(_plain(str(content))))


def tag(name: str, /, *content: Content, **attributes: Any) -> Html:
    """
    An attribute that is None or False is left out; `class_` is `class`, `data_of` is `data-of`.

    >>> tag("p", "x", class_="a", hidden=True, data_of='"')
    '<p class="a" hidden data-of="&quot;">x</p>'
    """
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{name}{said}>")
    return Html(f"<{name}{said}>{markup(content)}</{name}>")


def figure(text: str, value: float | None, of: str | None = None) -> Html:
    """A figure as people read it, with its full value, and where it stands in the file that it is from."""
    return tag("data", text, value=repr(value), data_of=of)


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(_plain(str(value)))}"'


def _plain(text: str) -> str:
    """Without characters that no document may hold, and without those that turn the direction of text."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
