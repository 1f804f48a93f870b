"""Scores of given translations, written line by line."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from softsearch.runtime.output import Output, open_output
from softsearch.runtime.progress import show_progress
from softsearch.runtime.translator import Translator
from softsearch.search.forced_decoding import PairScore
from softsearch.text.corpus import read_raw
from softsearch.text.filters import Cleaner


class ScoreWriter:
    """Writes one line for each pair, and computes totals.

    A line holds log p(tgt, EOS | src), natural log, and the number of target tokens, EOS included; with ``tokens`` also
    the log probability of each token, in the order of the text, EOS last. Columns are separated by tabs, tokens by
    spaces. The line of a pair with a blank side is empty, and the pair is not counted.
    """

    def __init__(self, output: IO[bytes] | Output, *, tokens: bool) -> None:
        self.pairs, self.tokens, self.log_prob = 0, 0, 0.0
        self._output, self._with_tokens = output, tokens

    def write(self, scores: Sequence[PairScore]) -> None:
        """Writes scores and flushes."""
        for score in scores:
            if not score.token_log_probs:
                self._output.write(b"\n")
                continue
            self.pairs += 1
            self.tokens += len(score.token_log_probs)
            self.log_prob += score.log_prob
            columns = [f"{score.log_prob:.6f}", str(len(score.token_log_probs))]
            if self._with_tokens:
                columns.append(" ".join(f"{log_prob:.6f}" for log_prob in score.token_log_probs))
            self._output.write("\t".join(columns).encode() + b"\n")
        self._output.flush()

    def summary(self) -> str:
        """The totals of all pairs, in one line."""
        nll = -self.log_prob / max(1, self.tokens)
        perplexity = math.exp(nll) if nll < 700 else math.inf
        return (
            f"{self.pairs:,} pairs, {self.tokens:,} target tokens, log probability {self.log_prob:,.3f}, "
            f"{nll:.4f} nats and perplexity {perplexity:,.4f} per token"
        )


def score_files(
    translator: Translator,
    src: Path,
    tgt: Path,
    languages: Mapping[str, str | None],
    *,
    output: Path | None,
    tokens: bool,
) -> str:
    """Scores the lines of ``tgt`` as translations of those in ``src``, in chunks; returns the summary.

    The files may be compressed. ``languages`` are ``Translator.score``'s ``src`` and ``tgt``. ``output`` is
    written atomically; None is standard output.

    Raises:
        CorpusError: a file cannot be read, or the line counts differ.
        InputError: a line has too many tokens for the bundle (the chunks before it are written), or the output cannot
            be written.
    """
    clean = Cleaner(src=src, tgt=tgt, keep_empty=True)
    with open_output(output) as stream:
        writer = ScoreWriter(stream, tokens=tokens)
        with show_progress(None, output) as show:
            show(0)
            for pairs in map(clean, read_raw(src, tgt)):
                options: dict[str, Any] = {**languages, "names": (src, tgt), "first_line": pairs.numbers[0]}
                writer.write(translator.score(pairs.src, pairs.tgt, **options))
                show(pairs.numbers[-1])
    return writer.summary()
