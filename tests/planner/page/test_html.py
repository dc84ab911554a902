"""Markup: whatever a text holds, it stays text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.page.html import Html, figure, markup, tag
from tests.planner.page.pages import Page


@settings(max_examples=25)
@given(st.text(max_size=40))
def test_any_text_stays_text(text: str) -> None:
    """In a tag and in an attribute; letters that nobody sees become one that is seen."""
    page = Page(tag("p", tag("b", text), title=text))
    assert [name for name, _ in page.tags] == ["p", "b"]
    told = "".join(one if one.isprintable() or one in "\n\t" else "\ufffd" for one in text)
    assert page.text == told
    assert page.named("p") == [{"title": told}]


def test_markup_is_not_escaped_twice() -> None:
    assert markup([tag("i", "&"), None, Html("<br>"), "<"]) == "<i>&amp;</i><br>&lt;"


def test_a_figure_has_its_full_value() -> None:
    assert figure("0.333", 1 / 3, "a.b") == '<data value="0.3333333333333333" data-of="a.b">0.333</data>'
