"""Markup without its tags, and back."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsearch.errors import InputError
from softsearch.text.markup import Segment
from softsearch.text.markup_reader import MarkupReader


def _read(text: str) -> tuple[str | Segment, ...]:
    reader = MarkupReader()
    reader.feed(text)
    return reader.close()


def _texts(text: str) -> list[str]:
    return [part.text for part in _read(text) if isinstance(part, Segment)]


def _written(text: str) -> str:
    """A fragment whose segments are written with their own text."""
    return "".join(
        part if isinstance(part, str) else part.write(part.text, [(node.begin, node.end) for node in part.nodes])
        for part in _read(text)
    )


FRAGMENTS = {  # with the texts to translate
    "Hello <b>wor<i>l</i>d</b>!": ["Hello world!"],
    "<ul><li>a<li>b <a title='x>y \"'>c</a> d</ul>": ["a", "b c d"],
    "<table><tr><td>one<td>two <B>x</b><tr><td>three</table>": ["one", "two x", "three"],
    "<p>x &amp; y &lt; z</p>\n <!-- c <b> --> <p> &nbsp; </p>": ["x & y < z"],
    "one <br>two <img src=a>three": ["one two three"],
    "use <code translate=no>ls &amp; <b>x</b></code> to see": ["use to see"],
    "click <b class='a notranslate'>OK</b>.": ["click."],
    "<div translate='no'>a <p>b</p></div><p>c</p>": ["c"],
    "<script>if (a<b) '</b>'</script> text <style>p > b {}</style>": ["text"],
    "<a href=http://x/>link</a> and <g/>more": ["link and more"],
    "<r>\n <s name='a'>One <g id='1'>two</g></s>\n <s>three</s>\n</r>\n": ["One two", "three"],
    "<pre translate=yes>a b\n  c <b>d</b>\n<i>x\ny</i></pre>": ["a b", "c d", "x", "y"],
    "one <pre>two\n<b>x</b></pre> three": ["one", "three"],
    "two <code>rm -rf /</code>, <kbd>x</kbd> <a href=x><var>y</var></a> three <m:math><mi>x</mi></m:math> z": [
        "two, three z"
    ],
    "see <svg><title>x</title></svg> <code translate=yes>one</code> <tt>a</tt>": ["see one"],
    "<a href='#'>\n<em>twenty-one</em>\n<!-- c -->\n<em>years ago</em>\n</a>": ["twenty-one years ago"],
    "<data>\n<item>a</item>\n<item>b</item>\n</data>": ["a", "b"],
    "two<sup><a href='#1'>[1]</a></sup> three": ["two three"],
    "one <sup><a href='#1'>2</a></sup> three <a href='#'>4</a> <sup>5</sup>": ["one three 4 5"],
    "two.\u2060<a href='#n'>2</a> m<sup>2</sup>, three<b>3</b>": ["two.\u2060 m, three"],
    "two<sup><a href='#n'>a</a></sup> 10<sup>6</sup> 1<sup>st</sup> $<b>5</b> <i>x</i>-<i>9</i>": ["two 10 1st $5 x-9"],
    "<b>one<!x><i>two</i> three</b>": ["onetwo three"],
    "&brand; is <b>x</b> and &brand; y": ["is x and y"],
    "<channel><link>http://a</link><title>b</title></channel>": ["http://a", "b"],
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c>">]><a>x <![CDATA[<b>]]> y</a>': ["x y"],
    "one<wbr>two <b></b><i> </i>": ["onetwo"],
    "": [],
    " <hr> <b></b>": [],
}


@pytest.mark.parametrize(("fragment", "texts"), FRAGMENTS.items())
def test_a_fragment_is_its_texts_and_what_is_around_them(fragment: str, texts: list[str]) -> None:
    assert _texts(fragment) == texts
    assert "".join(_written(fragment).split()) == "".join(fragment.split())


ATOMS = ["one ", "two", " three. ", "\n", "  ", "&nbsp;", "&brand;", "<br>", "<img src='a'>", "<!x>", "<!-- a <b> -->"]
ATOMS += ["<?p x?>", "<![CDATA[<i>]]>", "1", "\u200b", "2 ", "<hr>", "<p>", "<li>"]
NAMES = ["b", "i", "code", "sup", "sub", "a", "span", "x1", "s", "pre", "div", "p", "li", "td", "math", "m:svg", "kbd"]
NAMES += ["em", "title", "textarea"]


def _fragment(rng: random.Random, depth: int = 0) -> str:
    def parts() -> Iterator[str]:
        for _ in range(rng.randint(0, 5 - depth)):
            if rng.random() < 0.55:
                yield rng.choice(ATOMS)
            else:
                name, kept = rng.choice(NAMES), rng.choice(["", " translate=no", " translate=yes"])
                yield f"<{name}{kept}>{_fragment(rng, depth + 1)}</{name}>"

    return "".join(parts())


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_nothing_is_lost_whatever_is_copied(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        fragment = _fragment(rng)
        written = _written(fragment).replace("\xa0", "&nbsp;")
        assert "".join(written.replace("&nbsp;", "").split()) == "".join(fragment.replace("&nbsp;", "").split())


def test_what_a_model_does_not_read_stays_around_the_text() -> None:
    for around in ("\ufeff", "\u200b \u00ad", "&nbsp;", "&#8203;&rlm;", "&zwnj;\n", "\u3164", "\x07"):
        assert _texts(f"<p>{around}one<b>two</b> three{around}</p>{around}") == ["onetwo three"]
        assert _written(f"<p>{around}one {around}<b>two</b> {around}</p>").startswith(f"<p>{around}one ")
        assert _written(f"<p>{around}one{around}</p>") == f"<p>{around}one{around}</p>"
    assert _texts("\u2764\ufe0f &copy;&amp;") == ["\u2764\ufe0f \u00a9&"]


def test_text_is_decoded_and_encoded_again() -> None:
    assert _texts(f"&#{'9' * 5000}; &#{'0' * 5000}65; &#X{'0' * 5000}41;&#x{'f' * 5000};") == ["\ufffd A A\ufffd"]
    assert _texts("AT&T &eacute;&#x41;&quot; 1 < 2 <3") == ['AT&T \u00e9A" 1 < 2 <3']
    assert _written("AT&T &eacute; 1 < 2 <3 > &copy;") == "AT&amp;T \u00e9 1 &lt; 2 &lt;3 &gt; \u00a9"


@pytest.mark.parametrize(
    ("text", "place", "written"),
    [("nimm es", 5, "nimm <k/> es"), ("nimm", 4, "nimm <k/>"), ("nimm", 0, "<k/> nimm"), ("nimm.", 4, "nimm <k/>.")],
)
def test_text_that_is_copied_has_spaces_as_in_the_source(text: str, place: int, written: str) -> None:
    segment, *_ = (part for part in _read("use <k translate=no>x</k> it") if part)
    assert isinstance(segment, Segment)
    (node,) = segment.nodes
    assert segment.write(text, [(place, place)]).replace(node.opening, "<k/>") == written


ERRORS = {
    "a <b>x": "line 1, column 3: <b> is not closed before the end; add </b>",
    "a\nb</b>": "line 2, column 2: </b> closes nothing; remove it",
    "<b><i c='d'>x</b></i>": "line 1, column 4: <i c='d'> is not closed before </b>; add </i>",
    "<p>x<div>\n\n<b>y</div>": "line 3, column 1: <b> is not closed before </div>",
    "a <y and z": "line 1, column 3: the tag <y and z is not closed with >; add it, or write &lt;",
    "<b\n<c>": "line 1, column 1: the tag <b is not closed with >",
    "<a b='x>y</a>": "line 1, column 1: the tag <a b='x>y</a> is not closed with >",
    "x <!-- y": "line 1, column 3: <!-- is not closed before the end; add -->",
    "<script>x</b>": "line 1, column 1: <script> is not closed before the end; add </script>",
    "<b>" * 3000 + "</i>": "line 1, column 9001: </i> closes nothing",
}


@pytest.mark.parametrize(("fragment", "message"), ERRORS.items(), ids=range(len(ERRORS)))
def test_what_is_not_closed_is_named_with_its_place(fragment: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        _read(fragment)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_deep_and_long_markup_takes_no_recursion_and_no_square_of_its_length() -> None:
    nested = "<b>" * 3000, "</b>" * 3000
    for text in ("x".join(nested), f"x {''.join(nested)} y", "<li>x" * 3000, "x<br>" * 3000):
        assert _written(text).replace(" ", "") == text.replace(" ", "")
    with pytest.raises(InputError):
        _read("<a " * 20_000)
