"""Tags that are nested in a text are nested in its translation."""

import pytest

from softsearch.text.nested_tags import is_nested, nested_spans
from softsearch.text.symbols import restored

PAIR = ("<p>", "<b>", "%s", "</b>", "</p>")


@pytest.mark.parametrize(
    ("text", "nested"),
    [
        ("a <b>b<br>c</b>", True), ("<x/><g id='1'><g id='2'></g></g>", True), ("</b><b>", False), ("<b>", False),
        ("<a><b></a></b>", False), ("a < b", True),
    ],
)  # fmt: skip
def test_nesting_is_told(text: str, nested: bool) -> None:
    assert is_nested(text) == nested


@pytest.mark.parametrize(
    ("translation", "text"),
    [
        ("<1>a <2><3><4><5>", "<p>a <b>%s</b></p>"),
        ("<1><2>a<4> <3><5>", "<p><b>a</b> %s</p>"),
        ("<5><1>a <3> <4>b<2>", "<p><b>a %s </b>b</p>"),  # they crossed
        ("<5>a <3><2><4>", "</p>a %s<b></b>"),  # one is missing, which a repair would hide
    ],
)
def test_crossing_tags_take_the_order_of_the_text(translation: str, text: str) -> None:
    assert restored(translation, nested_spans(translation, PAIR)) == text


@pytest.mark.parametrize("spans", [("</b>", "<i>"), ("%s", "<br>"), ("%s", "%d")])
def test_what_is_not_nested_in_the_text_stays(spans: tuple[str, ...]) -> None:
    assert nested_spans("<2><1>", spans) == spans
