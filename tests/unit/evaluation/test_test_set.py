"""The sources of a test set as models with and without tags read them."""

import pytest

from softsearch.evaluation.test_set import HeldOutText
from softsearch.text.tokenizer import Kind, train_tokenizer

WITH_TAGS = ["<2de>", "<2fr>"]


@pytest.mark.parametrize("kind", ["word", "char"])
@pytest.mark.parametrize(
    ("tags", "source", "read"),
    [
        (WITH_TAGS, "a dog", "<2fr> a dog"),
        (WITH_TAGS, "<2de> a dog", "<2de> a dog"),
        (WITH_TAGS, "<2es> a dog", "a dog"),
        (["<2de>"], "a dog", "a dog"),
        ([], "<2fr> a dog", "a dog"),
        ([], "a <2fr> dog", "a <2fr> dog"),
        (WITH_TAGS, "", "<2fr> "),
    ],
)
def test_a_line_has_the_tag_that_the_model_knows(kind: Kind, tags: list[str], source: str, read: str) -> None:
    lines = ["a dog sees it"] * 3
    tokenizer = train_tokenizer(lines, kind=kind, vocab_size=12 + len(tags), tags=tags)
    assert HeldOutText("t", [source], ["x"], "plain", "en", "fr").sources_for(tokenizer) == [read]
