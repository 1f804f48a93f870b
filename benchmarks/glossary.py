"""What a glossary does to translations: terms in the output, BLEU, chrF, repetitions, length and time.

    python benchmarks/glossary.py BUNDLE --train TRAIN.en TRAIN.de --test TEST.en TEST.de

Terms are content words of the training text with the translations that IBM Model 1 links to them in both directions;
of those in the test text the most frequent ones make the glossary. Modes run in turn, in rounds; times are medians.
"""

import argparse
import gzip
import re
import statistics
import time
from collections import Counter
from pathlib import Path

import numpy as np
import sacrebleu

from softsearch import Translator
from softsearch.app import describe_machine
from softsearch.data import train_lexicon
from softsearch.runtime import Glossary

Side = list[str]
LEAST_LETTERS, LEAST_TIMES = 4, 12  # of a content word in the training text
LIKELY, LIKELY_BACK, KEPT = 0.05, 0.2, 0.8  # t(y | x), t(x | y), share of a word's pairs that have a translation of it
MODES = {"without": None, "soft, 1": 1.0, "soft, 2": 2.0, "soft, 4": 4.0, "hard": -1.0}  # by name: the bonus; -1 none


def read(path: Path) -> Side:
    """The lines of a file, plain or gzip."""
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode().splitlines()


def words(line: str) -> list[str]:
    """The words of a line, without punctuation."""
    return re.findall(r"\w+", line)


def linked(train: tuple[Side, Side]) -> dict[str, list[str]]:
    """The translations of each source word, lower-cased, the likeliest first."""
    names: tuple[dict[str, int], dict[str, int]] = ({}, {})
    src = [np.array([names[0].setdefault(w.lower(), len(names[0])) for w in words(line)]) for line in train[0]]
    tgt = [np.array([names[1].setdefault(w, len(names[1])) for w in words(line)]) for line in train[1]]
    x, y, t = train_lexicon(src, tgt)
    back = {(one, other): p for other, one, p in zip(*map(list, train_lexicon(tgt, src)), strict=True)}
    found: dict[int, list[tuple[float, int]]] = {}
    for one, other, share in zip(x.tolist(), y.tolist(), t.tolist(), strict=True):
        if share >= LIKELY and back.get((one, other), 0.0) >= LIKELY_BACK:
            found.setdefault(one, []).append((share, other))
    by_number = [list(side) for side in names]
    return {by_number[0][one]: [by_number[1][o] for _, o in sorted(each, reverse=True)] for one, each in found.items()}


def choose_terms(train: tuple[Side, Side], test: Side, count: int) -> dict[str, list[str]]:
    """The most frequent content words of the test text whose translations are nearly always among the linked ones."""
    pairs = [({w.lower() for w in words(s)}, set(words(t))) for s, t in zip(*train, strict=True)]
    times, kept = Counter[str](), Counter[str]()
    translations = {word: each for word, each in linked(train).items() if len(word) >= LEAST_LETTERS}
    for source, target in pairs:
        for word in source & translations.keys():
            times[word] += 1
            kept[word] += not target.isdisjoint(translations[word])
    in_test = Counter(word.lower() for line in test for word in words(line))
    usable = [w for w in translations if times[w] >= LEAST_TIMES and kept[w] >= KEPT * times[w] and in_test[w]]
    return {word: translations[word] for word in sorted(usable, key=lambda w: (-in_test[w], w))[:count]}


def standing(line: str, alternatives: tuple[str, ...]) -> int:
    """How often a line has one of the alternatives, as whole words."""
    return sum(len(re.findall(rf"(?<!\w){re.escape(each)}(?!\w)", line)) for each in alternatives)


def main() -> None:
    """Translates in all modes and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--train", type=Path, nargs=2, required=True)
    parser.add_argument("--test", type=Path, nargs=2, required=True)
    parser.add_argument("--terms", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path, help="write the glossary to this file")
    arguments = parser.parse_args()
    train = tuple(map(read, arguments.train))
    src, references = map(read, arguments.test)
    terms = choose_terms((train[0], train[1]), src, arguments.terms)
    rows = [(word, "|".join(each)) for word, each in terms.items()]
    if arguments.write:
        arguments.write.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
    glossary = Glossary(rows)
    required = [glossary.find(line) for line in src]
    total = sum(term.times for each in required for term in each)
    translator = Translator(arguments.bundle)
    seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
    outputs: dict[str, Side] = {"reference": references}
    for _ in range(arguments.rounds):
        for mode, bonus in MODES.items():
            options = {} if bonus is None else {"glossary": glossary, "glossary_bonus": None if bonus < 0 else bonus}
            began = time.perf_counter()
            outputs[mode] = [found.text for found in translator.translate(src, **options)]
            seconds[mode].append(time.perf_counter() - began)
    print(
        f"{describe_machine()}; {len(terms)} terms, {total} times in {sum(map(bool, required))} of {len(src)} lines\n"
    )
    print("| glossary | terms in the output | BLEU | chrF | repeated | length | time |\n|---|---|---|---|---|---|---|")
    for mode in (*MODES, "reference"):
        lines, met, repeated = outputs[mode], 0, 0
        for line, reference, each in zip(lines, references, required, strict=True):
            for term in each:
                times = standing(line, term.alternatives)
                met += min(times, term.times)
                repeated += times > max(term.times, standing(reference, term.alternatives))
        length = sum(len(line.split()) for line in lines) / sum(len(line.split()) for line in references)
        scores = [sacrebleu.corpus_bleu(lines, [references]).score, sacrebleu.corpus_chrf(lines, [references]).score]
        shown = (
            ""
            if mode == "reference"
            else f"{statistics.median(seconds[mode]) / statistics.median(seconds['without']):.2f}"
        )
        numbers = ["", ""] if mode == "reference" else [f"{score:.1f}" for score in scores]
        print(f"| {mode} | {met / total:.1%} | {' | '.join(numbers)} | {repeated} | {length:.3f} | {shown} |")


if __name__ == "__main__":
    main()
