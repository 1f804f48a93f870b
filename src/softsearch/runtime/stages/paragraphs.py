"""Paragraphs: text of any length is split into sentences, whose translations are joined."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, ClassVar

from softsearch.errors import ConfigError
from softsearch.option import Option
from softsearch.runtime.stages.stage import Stage

if TYPE_CHECKING:
    from softsearch.runtime.line_encoder import LineEncoder
    from softsearch.runtime.paragraphs import Paragraph, SplitText
    from softsearch.runtime.translation import Lines, Translation

ONE_SENTENCE = "it translates one sentence"


@dataclass(frozen=True, kw_only=True)
class ParagraphStage(Stage):
    """Splits lines into sentences; blank text between them stays as it is."""

    excludes = ("features", "prefix", "prefixes", "alignments", "head")
    unavailable: ClassVar = {"stream": ONE_SENTENCE, "page": ONE_SENTENCE}

    paragraphs: Annotated[
        bool,
        Option(
            "split lines into sentences, and join the translations with the original spacing (softsearch[paragraphs])",
            True,
        ),
    ] = False

    def before(self, lines: "Lines", encoder: "LineEncoder") -> "tuple[Lines, Sequence[SplitText]]":
        """Splits lines; raises ConfigError if the model reads several sources, or the splitter is not installed."""
        texts = split_sentences(lines.texts, encoder)
        return sentences_of(texts, lines), texts

    def after(self, translations: "list[Translation]", kept: "Sequence[SplitText]") -> "list[Translation]":
        """Joins the translations of the sentences of each line."""
        return join_sentences(kept, translations)


def split_sentences(texts: Sequence[str], encoder: "LineEncoder") -> "list[Paragraph]":
    """The sentences of each text; a language tag holds until the next line with one.

    Raises:
        ConfigError: the splitter is not installed, or the model reads several sources.
    """
    if encoder.tokenizers[0].reads_several_sources:
        raise ConfigError("the model reads several sources, whose sentences have no pairs; leave out paragraphs")
    from softsearch.runtime.paragraphs import Splitter  # here, because --help needs none of it

    splitter = Splitter(*encoder.trained_languages)
    return [splitter.split(text, encoder.tag) for text in texts]


def sentences_of(texts: "Sequence[SplitText]", lines: "Lines") -> "Lines":
    """The sentences of all texts, which were made of these lines, as lines."""
    every = [
        (sentence, number) for text, number in zip(texts, lines.numbers, strict=True) for sentence in text.sentences
    ]
    tags = [tags for text in texts for tags in text.tags]
    from softsearch.runtime.translation import Lines

    return Lines([sentence for sentence, _ in every], [number for _, number in every], tags)


def join_sentences(texts: "Sequence[SplitText]", translations: "Sequence[Translation]") -> "list[Translation]":
    """Joins the translations of all sentences, in order, into those of their texts."""
    each = iter(translations)
    return [text.join([*islice(each, len(text.sentences))]) for text in texts]
