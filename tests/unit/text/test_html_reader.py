"""HTML as browsers read it: html5lib, which follows the standard, makes the same tree of what comes back."""

import random
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator

import html5lib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsearch.errors import InputError
from softsearch.runtime.tag_places import segment_tags, with_places
from softsearch.runtime.translation import Translation
from softsearch.text.html_elements import FORMATTING
from softsearch.text.html_reader import HtmlReader
from softsearch.text.markup import Segment

INLINE = ["b", "i", "a", "span", "em", "code", "q", "sup", "font", "u"]
BLOCKS = ["p", "div", "ul", "li", "h2", "table", "tr", "td", "th", "blockquote", "dl", "dd", "pre", "section", "form"]
TEXTS = ["one", "two ", "three", " four", "<br>", "<img src=a>", " &amp; ", " ", "<!-- c -->", "<x", "&#0;", "</>"]


def _parts(text: str) -> tuple[str | Segment, ...]:
    reader = HtmlReader()
    reader.feed(text)
    return reader.close()


def _same(segment: Segment) -> str:
    return segment.write(segment.text, [(node.begin, node.end) for node in segment.nodes])


def _written(text: str, write: Callable[[Segment], str] = _same) -> str:
    return "".join(part if isinstance(part, str) else write(part) for part in _parts(text))


def _leaves(text: str) -> list[object]:
    """The characters and elements in order, with what is around them, and how the characters are formatted."""
    found: list[object] = []

    def walk(element: ET.Element, path: tuple[object, ...], formats: frozenset[object]) -> None:
        if callable(element.tag):  # a comment
            return
        name, own = element.tag.rpartition("}")[2], (element.tag, *sorted(element.attrib.items()))
        path, formats = (path, formats | {own}) if name in FORMATTING else ((*path, own), formats)
        found.extend([path] * (name not in FORMATTING))
        found.extend((letter, path, formats) for letter in "".join((element.text or "").split()))
        for child in element:
            walk(child, path, formats)
            found.extend((letter, path, formats) for letter in "".join((child.tail or "").split()))

    walk(html5lib.parseFragment(text), (), frozenset())
    return found


def _relations(text: str) -> Counter[object]:
    """Which elements are directly in which."""
    return Counter(
        ((one.tag, *sorted(one.attrib.items())), (other.tag, *sorted(other.attrib.items())))
        for one in html5lib.parseFragment(text).iter()
        for other in one
        if isinstance(one.tag, str) and isinstance(other.tag, str)
    )


def _soup(rng: random.Random) -> str:
    names = rng.choice([INLINE, [*INLINE, *["p"] * 6], [*INLINE, *BLOCKS]])

    def tokens() -> Iterator[str]:
        for _ in range(rng.randint(1, 14)):
            name = rng.choice(names)
            yield rng.choice([rng.choice(TEXTS), f"<{name}{rng.choice(['', ' c=1', ' C=2 '])}>", f"</{name}>"])

    return "".join(tokens())


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_any_soup_of_tags_comes_back_as_browsers_read_it(seed: int) -> None:
    rng = random.Random(seed)

    def shuffled(segment: Segment) -> str:
        """A translation with the words in another order, and random attention."""
        words = segment.text.split()
        others = rng.sample(words, len(words))
        weights = np.array([[rng.random() ** 6 for _ in range(len(words) + 1)] for _ in range(len(words) + 1)])
        src, tgt = ((*(f"\u2581{word}" for word in each), "</s>") for each in (words, others))
        tags = segment_tags(segment, [segment.text], 0)
        translation = Translation(" ".join(others), -1.0, -1.0, False, src, tgt, weights.astype(np.float32))
        places = with_places(translation, tags.sentences[0]).places
        assert places is not None
        return segment.write(translation.text, tags.places([places], [0]))

    for _ in range(50):
        soup = _soup(rng)
        written = _written(soup)
        assert _leaves(written) == _leaves(soup), soup
        assert _relations(_written(soup, shuffled)) == _relations(written), soup


POSTS = {  # what comes back, and the texts to translate
    "<p>one <b>two <i>three</b></i></p>": ("<p>one <b>two <i>three</i></b></p>", ["one two three"]),
    "<p>one <b>two</p>\n<p>three</b> four</p>": (
        "<p>one <b>two</b></p>\n<p><b>three</b> four</p>",
        ["one two", "three four"],
    ),
    "<p>one <span>two<p>three": ("<p>one <span>two</span><p>three", ["one two", "three"]),
    "<a href=1>one <a href=2>two": ("<a href=1>one</a> <a href=2>two</a>", ["one two"]),
    "one </b> two</div></p> <LI>three</Em>": ("one </b> two</div></p> <LI>three</Em>", ["one two", "three"]),
    "<b>one<p>two</b> three</p>": ("<b>one<p>two</b> three</p>", ["one", "two", "three"]),
    "<p class=\"a\"b='c' D>one<br/>two</br>three": ("<p class=\"a\"b='c' D>one<br/>two</br>three", ["one two three"]),
    "<html translate=no><body>one": ("<html translate=no><body>one", []),
    "one <x id=1/>two <span/>three": ("one <x id=1/>two <span/>three</span>", ["one two three"]),
    "two <code>rm <b>x</code> three": ("two <code>rm <b>x</b></code> <b>three</b>", ["two three"]),
    "<svg><title>x</title><g/></svg> one <math><mi>x": (
        "<svg><title>x</title><g/></svg> one <math><mi>x</mi>",
        ["one x"],
    ),
    "<textarea>one <b></textarea><title>two</title>": (
        "<textarea>one &lt;b&gt;</textarea><title>two</title>",
        ["one <b>", "two"],
    ),
    "<script>a < '</b>'</script>one<style>p>b{}": ("<script>a < '</b>'</script>one<style>p>b{}</style>", ["one"]),
    "one <!-- <b> --!> two <? x > & <!x> three <y z='>": (
        "one <!-- <b> --!> two <? x > &amp; <!x> three <y z='>",
        ["one two & three"],
    ),
    "<pre>a <b>b</pre> c": ("<pre>a <b>b</b></pre> <b>c</b>", ["c"]),
}


@pytest.mark.parametrize(("post", "wanted"), POSTS.items(), ids=range(len(POSTS)))
def test_what_clients_send_is_closed_as_in_browsers(post: str, wanted: tuple[str, list[str]]) -> None:
    assert "".join(_written(post).split()) == "".join(wanted[0].split())
    assert [part.text for part in _parts(post) if isinstance(part, Segment)] == wanted[1]


def test_white_space_at_the_end_of_a_block_stays_behind_an_added_end_tag() -> None:
    wanted = "<li>one <b>two</b>\n<li><b>three <b><i>four</i></b></b> \n\n"
    assert _written("<li>one <b>two\n<li>three <b><i>four \n\n") == wanted


def test_long_and_deep_html_takes_linear_time_and_has_a_limit() -> None:
    for text in (
        "<p>one <b>two</b>",
        "</b>x</div>",
        "< ",
        "<!-- ",
        "<a ",
        "<a b='",
        "<svg>",
        "<title>",
        "<b><i>x</b></i>",
    ):
        assert _parts(text * 5000)
    for text in ("<div>", "<b>"):
        assert _parts(text * 200)
        with pytest.raises(InputError, match=r"text 2, line 3: <\w+> is in more than 512 open elements; close some"):
            HtmlReader("text 2, ", 2).feed("\n" + text * 513)
