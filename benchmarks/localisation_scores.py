"""How translations of catalogs compare with people's: the tables of ``localisation.py``."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import sacrebleu
from sacrebleu.significance import PairedTest

from softsearch.app import describe_machine
from softsearch.text.parts import mask, spans_of, spans_of_translation

BUCKETS = ((0, 50), (50, 70), (70, 85), (85, 101))  # similarity of the nearest message in training, per cent
SYMBOL = re.compile(r"<\d+>")


class Unit(NamedTuple):
    """A message that is held out."""

    catalog: str
    context: str
    source: str
    target: str
    is_new: bool  # its text is nowhere in training


def plain(text: str) -> str:
    """A text without its accelerator."""
    return text.replace("~", "", 1) if text.count("~") == 1 else text


def language_alone(texts: Iterable[str]) -> list[str]:
    """Texts without what is not language, and without accelerators."""
    return [" ".join(SYMBOL.sub(" ", mask(plain(text)).text).split()) for text in texts]


def is_wrong(source: str, target: str) -> bool:
    """Tells whether a translation has other placeholders or tags than its message, or no or another accelerator."""
    spans = Counter(source[begin:end] for begin, end in spans_of(source))
    found = Counter(target[begin:end] for begin, end in spans_of_translation(target, spans))
    return found != spans or (source.count("~") == 1) != (target.count("~") == 1)


class Scores(NamedTuple):
    """How translations compare with references."""

    bleu: float
    chrf: float
    exact: float
    left: int
    wrong: int

    def row(self) -> str:
        return f"{self.bleu:.1f} | {self.chrf:.1f} | {self.exact:.1%} | {self.left} | {self.wrong}"


def score(units: Sequence[Unit], texts: Sequence[str], lang: str) -> Scores:
    """Scores of some units; those that were left alone count as empty."""
    hypotheses, references = language_alone(texts), language_alone(unit.target for unit in units)
    tokenize = "char" if lang in ("ja", "zh") else "13a"
    return Scores(
        sacrebleu.corpus_bleu(hypotheses, [references], tokenize=tokenize).score,
        sacrebleu.corpus_chrf(hypotheses, [references]).score,
        sum(text == unit.target for text, unit in zip(texts, units, strict=True)) / len(units),
        sum(not text for text in texts),
        sum(bool(text) and is_wrong(unit.source, text) for text, unit in zip(texts, units, strict=True)),
    )


def report(
    file: Path, title: str, units: Sequence[Unit], lang: str, similar: Sequence[float], systems: Mapping[str, list[str]]
) -> None:
    """Prints the tables and writes them to a file.

    Args:
        file: to write.
        title: what was measured.
        units: messages with people's translations.
        lang: their language.
        similar: the similarity of the nearest message in training, for each of them.
        systems: translations of each, by what made them.
    """
    lines = [
        title,
        describe_machine(),
        "",
        "| | BLEU | chrF | exact | left alone | placeholders, tags or accelerator wrong |",
        "|---|---|---|---|---|---|",
        *(f"| {name} | {score(units, texts, lang).row()} |" for name, texts in systems.items()),
        "",
        f"| BLEU by nearest message | {' | '.join(f'{a} to {min(b, 100)}' for a, b in BUCKETS)} |",
        f"|---|{'---|' * len(BUCKETS)}",
    ]
    buckets = [[i for i, ratio in enumerate(similar) if a <= ratio < b] for a, b in BUCKETS]
    lines.append(f"| messages | {' | '.join(str(len(bucket)) for bucket in buckets)} |")
    for name, texts in systems.items():
        cells = [
            f"{score([units[i] for i in bucket], [texts[i] for i in bucket], lang).bleu:.1f}" if bucket else "-"
            for bucket in buckets
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", *significance(units, systems, lang)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def significance(units: Sequence[Unit], systems: Mapping[str, list[str]], lang: str) -> list[str]:
    """The p-value of each system against the model with matches, by paired bootstrap."""
    metric = sacrebleu.BLEU(tokenize="char" if lang in ("ja", "zh") else "13a", references=None)
    best, *others = sorted(systems, key="the model with matches".__ne__)
    named = [(name, language_alone(systems[name])) for name in (best, *others)]
    references = [language_alone(unit.target for unit in units)]
    _, scores = PairedTest(named, {"BLEU": metric}, references, test_type="bs", n_samples=1000)()
    results = scores["BLEU"]
    return [
        f"p against {best}: {name} {result.p_value:.3f}"
        for (name, _), result in zip(named[1:], results[1:], strict=True)
    ]
