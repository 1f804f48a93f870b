"""Pairs of lines to log probabilities: what a bundle thinks of translations that are known."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from softsearch.errors import InputError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.output import Output, open_output
from softsearch.runtime.session import OnnxStepFunction
from softsearch.runtime.system import BATCH_TOKENS, open_tokenizers
from softsearch.search.scoring import PairScore, score_pairs
from softsearch.text.corpus import Cleaner, is_blank, read_raw
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import EOS

Ids = list[list[int]]


class ScoreWriter:
    """Writes one line for each pair and adds up.

    A line holds log p(tgt, EOS | src), natural log, and the target tokens, EOS counted; with ``tokens`` also the log
    probability of each token, in the order of the text, EOS last. A tab is between the columns, a space between tokens.

    Args:
        output: where the lines go.
        tokenizer: of the target.
        tokens: write the third column.
    """

    def __init__(self, output: IO[bytes] | Output, tokenizer: SentencePieceTokenizer, *, tokens: bool) -> None:
        self.pairs, self.tokens, self.log_prob = 0, 0, 0.0
        self._output, self._tokenizer, self._with_tokens = output, tokenizer, tokens

    def write(self, tgt: Sequence[Sequence[int]], scores: Sequence[PairScore]) -> None:
        """Writes the scores of ``tgt``, token ids without EOS."""
        for ids, score in zip(tgt, scores, strict=True):
            self.pairs += 1
            self.tokens += len(score.token_log_probs)
            self.log_prob += score.log_prob
            columns = [f"{score.log_prob:.6f}", str(len(score.token_log_probs))]
            if self._with_tokens:
                order = self._tokenizer.text_order([*ids, EOS])
                columns.append(" ".join(f"{score.token_log_probs[place]:.6f}" for place in order))
            self._output.write("\t".join(columns).encode() + b"\n")
        self._output.flush()

    @property
    def nll(self) -> float:
        """Mean -log p of a token, in nats."""
        return -self.log_prob / self.tokens

    def summary(self) -> str:
        """All pairs together, in one line."""
        perplexity = math.exp(self.nll) if self.nll < 700 else math.inf
        return (
            f"{self.pairs:,} pairs, {self.tokens:,} target tokens, log probability {self.log_prob:,.3f}, "
            f"{self.nll:.4f} nats and perplexity {perplexity:,.4f} per token"
        )


def score_files(bundle: Bundle, src: Path, tgt: Path, *, output: Path | None, tokens: bool) -> str:
    """Scores the lines of ``tgt`` as translations of those of ``src``, some thousand at a time.

    Args:
        bundle: the model.
        src: source sentences, one a line; plain, gzip or xz.
        tgt: their translations.
        output: this file appears when all is done, or not at all; None is standard output.
        tokens: write the log probability of each token too.

    Returns:
        :meth:`ScoreWriter.summary`.

    Raises:
        CorpusError: a file cannot be read, or the line counts differ.
        InputError: a line is blank or has more tokens than the bundle takes; the chunks before it are written. Or the
            output cannot be written.
    """
    tokenizers = open_tokenizers(bundle)
    step_fn = OnnxStepFunction(bundle)
    with open_output(output) as stream:
        writer = ScoreWriter(stream, tokenizers[1], tokens=tokens)
        for src_ids, tgt_ids in _encoded(bundle, tokenizers, src, tgt):
            with_eos = [[*ids, EOS] for ids in src_ids]
            writer.write(tgt_ids, score_pairs(step_fn, with_eos, tgt_ids, batch_tokens=BATCH_TOKENS))
    return writer.summary()


def _encoded(
    bundle: Bundle, tokenizers: tuple[SentencePieceTokenizer, SentencePieceTokenizer], src: Path, tgt: Path
) -> Iterator[tuple[Ids, Ids]]:
    """The ids, without EOS, of both sides of neighbouring pairs."""
    facts = bundle.manifest
    # The source as in translation; the target as long as a translation may get.
    longest = int(facts.search["max_length_factor"] * facts.max_src_tokens) + facts.search["max_length_offset"]
    limits = facts.max_src_tokens, longest
    clean = Cleaner(src=src, tgt=tgt, keep_empty=True)
    for pairs in map(clean, read_raw(src, tgt)):
        sides = zip(tokenizers, (pairs.src, pairs.tgt), (src, tgt), limits, strict=True)
        src_ids, tgt_ids = (
            [
                _encode(tokenizer, line, f"{path}:{number}", limit)
                for line, number in zip(lines, pairs.numbers, strict=True)
            ]
            for tokenizer, lines, path, limit in sides
        )
        yield src_ids, tgt_ids


def _encode(tokenizer: SentencePieceTokenizer, line: str, where: str, limit: int) -> list[int]:
    if is_blank(line):
        raise InputError(f"{where} is blank; expected a sentence, so remove the pair from both files")
    ids = tokenizer.encode(line)
    if len(ids) >= limit:
        raise InputError(
            f"{where} has {len(ids) + 1} tokens, EOS counted; expected at most {limit}, so put one sentence on each "
            "line or remove the pair from both files"
        )
    return ids
