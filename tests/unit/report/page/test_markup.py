"""Text is escaped exactly once."""

import pytest

from softsearch.report.page.markup import Markup, escape, join, tag


def test_text_is_escaped_and_markup_is_not() -> None:
    inner = tag("b", "<&>")
    assert inner == "<b>&lt;&amp;&gt;</b>"
    assert tag("p", inner, "<i>") == "<p><b>&lt;&amp;&gt;</b>&lt;i&gt;</p>"
    assert join(inner, "&") == "<b>&lt;&amp;&gt;</b>&amp;"
    assert escape(escape("<")) == "&lt;"


def test_attributes_are_text_too() -> None:
    written = tag("a", "x", href='"><script>', class_="b", aria_label="c", hidden=True, id=None, open=False, x=0.25)
    assert written == '<a href="&quot;&gt;&lt;script&gt;" class="b" aria-label="c" hidden x="0.25">x</a>'


@pytest.mark.parametrize("name", ["meta", "img", "input"])
def test_some_elements_have_no_end(name: str) -> None:
    assert tag(name, id="a") == f'<{name} id="a">'


def test_what_is_no_text_is_replaced() -> None:
    assert escape("a\x00\x1b\ud800\x85b\tc\nä") == "a\ufffd\ufffd\ufffd\ufffdb\tc\nä"
    assert isinstance(escape("a"), Markup)
