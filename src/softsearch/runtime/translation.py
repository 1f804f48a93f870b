"""Translations of lines: long lines are split into parts, whose translations are joined."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import InputError
from softsearch.runtime.options import Search
from softsearch.runtime.sentences import count_sentences
from softsearch.search.interface import Hypothesis
from softsearch.text.corpus import is_blank
from softsearch.text.features import Features, check_features, check_finite, feature_lines, with_features
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers
from softsearch.text.vocabulary import SOURCE_SEPARATOR, with_eos

if TYPE_CHECKING:
    from softsearch.runtime.glossary import Wanted
    from softsearch.search.confidence import Confidence
    from softsearch.text.sentence_tags import SentenceTags

# Where to split, best first: after a sentence, after a clause, between words, between characters.
_BREAKS = tuple(
    re.compile(pattern)
    for pattern in (r"(?<=[.!?\u2026])\s+|(?<=[\u3002\uff01\uff1f])", r"(?<=[,;:])\s+|(?<=[\u3001\uff0c])", r"\s+", r"")
)


@dataclass(frozen=True)
class Translation:
    """The best translation of a line; if the line was split, the translations of its parts, joined by spaces.

    The sentences of a paragraph are joined by the original text between them.

    Attributes:
        text: the translation, one line; for a paragraph, as many lines as in the source.
        score: the log probability after the length penalty; higher is better.
        log_prob: the natural log of the probability.
        truncated: the length limit was reached before the model ended the sentence.
        src_pieces: the source in the model's units, in the order of the text, with the final ``</s>``.
        tgt_pieces: the translation in the model's units, with the final ``</s>`` unless truncated.
        alignments: the attention weights, ``[len(tgt_pieces), len(src_pieces)]``, if requested.
        fewer_sentences: the source line has more sentences, so some may be missing; one per line is expected.
        unknown: parts of the line that the source vocabulary lacks: characters, or words if the model uses words.
        missing_terms: glossary terms, in the source's language, whose translations are not in ``text``.
        term_cost: nats by which glossary terms and text to keep lower ``log_prob``, compared with no such requirement.
        optimal: for exact search, whether this is proven to be the model's best translation.
        alternatives: with ``n_best`` above 1, the next best ones, best first.
        confidence: with ``confidence=True``, the model's confidence in it; None for a line without text.
        traces: with ``trace=True``, a record of the search for each part, see docs/search.md.
        places: of a sentence of markup, where each of its tags begins and ends in ``text``, instead of alignments.
    """

    text: str
    score: float
    log_prob: float
    truncated: bool
    src_pieces: tuple[str, ...]
    tgt_pieces: tuple[str, ...]
    alignments: NDArray[np.float32] | None
    fewer_sentences: bool = False
    unknown: tuple[str, ...] = ()
    missing_terms: tuple[str, ...] = ()
    term_cost: float = 0.0
    optimal: bool | None = None
    alternatives: tuple["Translation", ...] = ()
    confidence: "Confidence | None" = None
    traces: tuple[dict[str, Any], ...] = ()
    places: tuple[tuple[int, int], ...] | None = None

    @property
    def n_best(self) -> tuple["Translation", ...]:
        """This translation and its alternatives."""
        return (self, *self.alternatives)


class Part(NamedTuple):
    """A line, or a part of it that fits into the model."""

    text: str
    ids: Sequence[int]
    wanted: "Wanted | None" = None  # required contents of its translation


def feature_parts(
    features: Features, texts: Sequence[str] | None, tokenizer: SentencePieceTokenizer, limit: int, first: int
) -> Iterator[list[Part]]:
    """Makes one part for each example of feature vectors; ``limit`` tokens, EOS included, are too many.

    ``texts`` come with the vectors, if the model reads them; ``first`` is the number of the first example, for
    messages.

    Raises:
        InputError: there are too many vectors or tokens, the number of texts differs from that of examples, or the
            vocabulary is not that of a model of features.
        CorpusError: type, shape or a value is wrong.
    """
    check_features(features, "features")
    check_finite(features, "features", first)
    if tokenizer.reads_several_sources != (texts is not None):
        wanted = "feature vectors alone; leave out" if texts is not None else "text with feature vectors; add"
        raise InputError(f"the model reads {wanted} the lines of text")
    if texts is not None and len(texts) != len(features):
        raise InputError(f"{len(features)} examples of features for {len(texts)} lines, expected one for each line")
    lines = list(feature_lines(features))
    if texts is not None:
        lines = [f"{tags} {SOURCE_SEPARATOR} {text}" for tags, text in zip(lines, texts, strict=True)]
    sources = with_features([tokenizer.encode(line) for line in lines], features)
    for number, (line, ids) in enumerate(zip(lines, sources, strict=True), first):
        if len(ids) >= limit:
            raise InputError(
                f"example {number} has {features.shape[1]} positions, {len(ids)} tokens in all, expected fewer than "
                f"{limit}; export the model with a greater max_src_tokens"
            )
        yield [Part(line, ids)]


def source_lines(lines: Iterable[str] | None, first: int) -> Iterable[str]:
    """Checks that source lines are text; ``first`` is the number of the first one.

    Raises:
        InputError: there are no lines, or one is not text.
    """
    if lines is None:
        raise InputError("expected lines of text, or features for a model that reads them")
    return text_lines("lines", lines, first)


def text_lines(name: str, lines: Iterable[str], first: int) -> Iterator[str]:
    """Yields lines, and checks that they are text; ``first`` is the number of the first one.

    Raises:
        InputError: one is not text.
    """
    if isinstance(lines, str):
        raise InputError(f"{name} is one string, expected a list of lines; put it into a list, as in translate([text])")
    if not isinstance(lines, Iterable):
        raise InputError(f"{name} is {lines!r:.60} ({type(lines).__name__}), expected a list of lines of text")
    for number, line in enumerate(lines, first):
        if not isinstance(line, str):
            raise InputError(f"{name}: line {number} is {line!r:.60} ({type(line).__name__}), expected text")
        yield line


def encode_whole(encode: Callable[[str], list[int]], line: str, where: str, limit: int) -> list[int]:
    """Encodes a text without splitting it; a blank one has no ids; more than ``limit`` tokens, with EOS, are refused.

    Raises:
        InputError: it has too many tokens; the message contains ``where``.
    """
    ids = [] if is_blank(line) else encode(line)
    if len(ids) >= limit:
        raise InputError(
            f"{where} has {len(ids) + 1} tokens, EOS included; expected at most {limit}, so put one sentence on each "
            "line or remove the pair from both sides"
        )
    return ids


class Lines(NamedTuple):
    """Lines on their way to the model.

    Attributes:
        texts: the lines.
        numbers: their numbers in the input, for messages; those of the sentences of a line are equal.
        tags: if the lines are sentences of markup, the tags of each.
    """

    texts: Sequence[str]
    numbers: Sequence[int]
    tags: "Sequence[SentenceTags]" = ()

    @classmethod
    def read(cls, lines: Iterable[str] | None, first: int) -> "Lines":
        """Checks that lines are text; ``first`` is the number of the first one.

        Raises:
            InputError: there are no lines, or one is not text.
        """
        texts = list(source_lines(lines, first))
        return cls(texts, range(first, first + len(texts)))


class Candidate(NamedTuple):
    """A translation of a part."""

    part: Part
    hypothesis: Hypothesis
    text: str
    missing_terms: tuple[str, ...] = ()
    confidence: "Confidence | None" = None
    trace: dict[str, Any] | None = None  # a record of the search for it


Candidates = list[list[Candidate]]  # the n best translations of each part


def join_confidences(parts: Sequence["Confidence | None"]) -> "Confidence | None":
    """The confidence in joined translations, if it was measured."""
    measured = [part for part in parts if part is not None]
    return measured[0].followed_by(measured[1:]) if measured else None


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Halves a text until every part ``fits``, at the strongest break near the middle.

    Only white space around the parts is dropped; no character is split.
    """
    text = text.strip()
    if len(text) <= 1 or fits(text):
        return [text] if text else []
    at = _break_near_middle(text)
    return split_text(text[:at], fits) + split_text(text[at:], fits)


def _break_near_middle(text: str) -> int:
    # Only the middle half is searched, so that both parts shrink and the recursion stays shallow.
    first, last = max(1, len(text) // 4), max(1, 3 * len(text) // 4)
    for pattern in _BREAKS:
        breaks = [match.end() for match in pattern.finditer(text, first, last) if 0 < match.end() < len(text)]
        if breaks:
            return min(breaks, key=lambda end: abs(end - len(text) // 2))
    return len(text) // 2


def join_all(
    search: Search, tokenizers: Tokenizers, parts: Sequence[Sequence[Candidate]], src_lang: str
) -> Translation:
    """Joins the candidates of a line's parts: its n-th best translation consists of their n-th best.

    ``src_lang`` is as in ``join``.
    """
    if not parts:
        return Translation("", 0.0, 0.0, False, (), (), None)
    best, *others = [join(search, tokenizers, candidates, src_lang) for candidates in zip(*parts, strict=False)]
    traces = tuple(first.trace for first, *_ in parts if first.trace is not None)
    return replace(best, alternatives=tuple(others), traces=traces)


def join(search: Search, tokenizers: Tokenizers, candidates: Sequence[Candidate], src_lang: str) -> Translation:
    """Joins the translations of a line's parts, one for each, in the order of the text.

    ``src_lang`` is the line's language, such as ``en``, or ``en+fr`` for several sources, or "".
    """
    src_tokenizer, tgt_tokenizer = tokenizers
    hypotheses = [candidate.hypothesis for candidate in candidates]
    sources = [with_eos(candidate.part.ids) for candidate in candidates]
    texts = [candidate.part.text for candidate in candidates]
    scores = [hypothesis.score for hypothesis in hypotheses]
    line = " ".join(texts)
    languages = src_lang.split("+")
    # A translation must be one line, whichever characters a reader treats as line ends.
    text = " ".join(" ".join(candidate.text for candidate in candidates).splitlines())
    return Translation(
        text=text,
        fewer_sentences=count_sentences(text)
        < max(map(count_sentences, _sources(line), chain(languages, repeat(languages[-1])))),
        unknown=tuple(each for candidate in candidates for each in _unknown(src_tokenizer, candidate.part)),
        missing_terms=tuple(term for candidate in candidates for term in candidate.missing_terms),
        term_cost=sum(hypothesis.term_cost for hypothesis in hypotheses),
        score=scores[0] if len(scores) == 1 else _joint_score(search, scores, [h.length for h in hypotheses]),
        log_prob=sum(hypothesis.log_prob for hypothesis in hypotheses),
        truncated=any(hypothesis.truncated for hypothesis in hypotheses),
        optimal=all(h.optimal for h in hypotheses) if getattr(search, "is_exact", False) else None,
        confidence=join_confidences([candidate.confidence for candidate in candidates]),
        src_pieces=tuple(
            piece for pair in zip(texts, sources, strict=True) for piece in src_tokenizer.read_pieces(*pair)
        ),
        tgt_pieces=tuple(piece for h in hypotheses for piece in tgt_tokenizer.pieces(h.written)),
        alignments=_block_diagonal(
            [
                h.alignments[np.ix_(tgt_tokenizer.text_order(h.written), src_tokenizer.text_order(src))]
                for src, h in zip(sources, hypotheses, strict=True)
                if h.alignments is not None
            ]
        ),
    )


def _sources(line: str) -> list[str]:
    """The sources of a line, usually one."""
    if SOURCE_SEPARATOR not in line:
        return [line]
    from softsearch.text.joint_sources import split_sources  # few models read several

    return split_sources(line)


def _unknown(tokenizer: SentencePieceTokenizer, part: Part) -> list[str]:
    return [] if tokenizer.unknown_ids.isdisjoint(part.ids) else tokenizer.unknown(part.text)


def _joint_score(search: Search, scores: Sequence[float], lengths: Sequence[int]) -> float:
    """The search's score for the joined translation of parts with these scores and numbers of tokens.

    The coverage penalty is the mean over the parts, weighted by their norms.
    """

    def per_nat(length: int) -> float:
        return search.score(1.0, length)

    total = sum(score / per_nat(length) for score, length in zip(scores, lengths, strict=True))
    return per_nat(sum(lengths)) * total


def _block_diagonal(blocks: Sequence[NDArray[np.float32]]) -> NDArray[np.float32] | None:
    """The attention of a split line: zero between a part and the other parts' sources."""
    if len(blocks) <= 1:
        return blocks[0] if blocks else None
    corners = np.cumsum([(0, 0), *(block.shape for block in blocks)], axis=0)
    whole = np.zeros(corners[-1], dtype=np.float32)
    for block, (row, column) in zip(blocks, corners[:-1], strict=True):
        whole[row : row + block.shape[0], column : column + block.shape[1]] = block
    return whole
