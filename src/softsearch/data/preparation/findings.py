"""What is said of prepared text: counts for each corpus, and warnings of text that is not what it seems."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import chain, islice

from softsearch.data.corpora.base import FilePair
from softsearch.data.preparation.cleaned_text import CleanedText
from softsearch.data.preparation.parallelism import Mismatch
from softsearch.text.filters import CorpusReport
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import UNK

_LINES_TO_CHECK = 1000  # for unknown words
_MISMATCHES_REPORTED = 1000
_log = logging.getLogger(__name__)


def corpus_reports(
    split: str, files: Sequence[FilePair], text: CleanedText, *, has_features: bool
) -> list[dict[str, object]]:
    """Returns the findings in the corpora of a split.

    Raises:
        CorpusError: no pair of one is left.
    """
    reports = []
    for (src, tgt), kept, counts, parts in zip(files, text.sizes(), text.counts, text.corpora, strict=True):
        report = CorpusReport(src=src, tgt=tgt, kept=kept, **counts)
        _log.info("%s: %s", split, report.summary())
        report.check()
        # Lines of features only count vectors.
        found = [] if has_features else [*chain.from_iterable(part.mismatches for part in parts)]
        warn_of_mismatches(f"{src} | {tgt}", found)
        mismatches = [mismatch._asdict() for mismatch in found[:_MISMATCHES_REPORTED]]
        reports.append({**asdict(report), "findings": report.findings(), "mismatches": mismatches})
    return reports


def warn_of_mismatches(files: str, found: Sequence[Mismatch]) -> None:
    """Warns about stretches that do not seem to be translations, and shows the first."""
    if found:
        others = f", and {len(found) - 1:,} more stretches" if len(found) > 1 else ""
        _log.warning("%s do not seem to be parallel: %s%s; check the order of their lines", files, found[0], others)


def warn_of_unknown_words(side: str, tokenizer: SentencePieceTokenizer, sample: Iterable[str]) -> None:
    """Warns if most words of some lines are not in the vocabulary, as for another language or form of text."""
    counts = Counter(word for line in islice(sample, _LINES_TO_CHECK) for word in line.split())
    unknown = Counter({word: count for word, count in counts.items() if UNK in tokenizer.encode(word)})
    if unknown.total() * 2 > counts.total():
        _log.warning(
            "the vocabulary lacks %.0f %% of the words in the %s text (%s, ...); check that it is for this language "
            "and this form of text",
            100 * unknown.total() / counts.total(),
            side,
            ", ".join(f"{word!r:.40}" for word, _ in unknown.most_common(3)),
        )
