"""The sources of a test set as models with and without tags read them."""

import pytest

from softsearch.data.sentencepiece_file import with_joiner
from softsearch.evaluation.test_set import HeldOutText
from softsearch.text.tokenizer import JOINER, Kind, SentencePieceTokenizer, train_tokenizer

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


def test_references_of_split_text_are_joined_for_scores_and_split_for_likelihood() -> None:
    lines = ["low@@ er new", "new"]
    tokenizer = SentencePieceTokenizer(with_joiner(train_tokenizer(lines, kind="word", vocab_size=9).model, JOINER))
    text = HeldOutText("t", lines, lines, "plain", "en", "de")
    joined = text.joined(tokenizer).select([0])
    assert (joined.sources, joined.references) == (["low@@ er new"], ["lower new"])
    assert joined.encode((tokenizer, tokenizer)) == ([tokenizer.encode(lines[0])],) * 2
    characters = train_tokenizer(["lower new"], kind="char", vocab_size=20)
    assert text.joined(characters) is text
    assert joined.encode((characters, characters))[1] == [characters.encode("lower new")]
