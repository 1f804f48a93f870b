"""The 300 sentence pairs of Multi30k whose words were aligned by reading, and how far other aligners are from them.

    python benchmarks/alignments/multi30k.py MULTI30K --write FOLDER
    python benchmarks/alignments/multi30k.py MULTI30K --eflomal RESULTS.json      # needs pip install eflomal

MULTI30K has the lower-cased, tokenised files; FOLDER gets the pairs, ``gold.en`` and ``gold.de``. IBM Model 1 and
eflomal (Östling & Tiedemann 2016: an HMM with fertilities, by Gibbs sampling) learn from the training text. Of eflomal
each direction is compared, the links that both directions have, and those that one of them has.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from softsearch.data import Multi30k
from softsearch.evaluation import Gold, alignment_error_rate
from softsearch.extras.claims.analyses.aligners import Lines, aligned_captions, model_1_links
from softsearch.text import read_lines, write_lines

SEED, SIZE = 1, 300
Links = set[tuple[int, int]]  # of a pair: places of words, English before German


def read_split(folder: Path, split: str) -> Lines:
    """The English and the German lines of ``train`` or ``val``."""
    src, tgt = Multi30k(root=folder).files(folder)[split]
    return list(read_lines(src)), list(read_lines(tgt))


def sample(pairs: int) -> list[int]:
    """The numbers of the pairs that are aligned, from 1."""
    return sorted(random.Random(SEED).sample(range(1, pairs + 1), SIZE))


def eflomal_links(train: Lines, lines: Lines) -> dict[str, list[Links]]:
    """Word links of ``lines``, trained on both texts: of each direction, in both of them, in one of them."""
    import eflomal  # no dependency of the project: GPL, and compiled when it is installed

    src, tgt = ([f"{line}\n" for line in (*text, *own)] for text, own in zip(train, lines, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{name}" for name in ("forward", "reverse")]
        eflomal.Aligner().align(src, tgt, links_filename_fwd=files[0], links_filename_rev=files[1])
        forward, reverse = (parse(read_lines(Path(file)))[len(train[0]) :] for file in files)
    pairs = list(zip(forward, reverse, strict=True))
    return {
        "English to German": forward,
        "German to English": reverse,
        "in both": [one & other for one, other in pairs],
        "in one": [one | other for one, other in pairs],
    }


def parse(lines: Iterable[str]) -> list[Links]:
    """Links in Pharaoh's format."""
    found = ((link.split("-") for link in line.split()) for line in lines)
    return [{(int(src), int(tgt)) for src, tgt in links} for links in found]


def agreement(found: Sequence[Links], gold: Sequence[Gold]) -> dict[str, float]:
    """Precision, recall and alignment error rate (Och & Ney 2003, section 6), to four digits."""
    right = sum(len(each & possible) for each, (_, possible) in zip(found, gold, strict=True))
    sure_ones = sum(len(each & sure) for each, (sure, _) in zip(found, gold, strict=True))
    scores = {
        "precision": right / sum(map(len, found)),
        "recall": sure_ones / sum(len(sure) for sure, _ in gold),
        "aer": alignment_error_rate(found, gold),
    }
    return {name: round(score, 4) for name, score in scores.items()}


def main() -> None:
    """Prints counts, and how other aligners agree with the links."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("multi30k", type=Path)
    parser.add_argument("--write", type=Path, help="write the pairs to this folder")
    parser.add_argument("--eflomal", type=Path, metavar="FILE", help="also let eflomal align; write the agreement here")
    arguments = parser.parse_args()
    lines, gold = aligned_captions(read_split(arguments.multi30k, "val"))
    if arguments.write:
        arguments.write.mkdir(parents=True, exist_ok=True)
        for side, lang in zip(lines, ("en", "de"), strict=True):
            write_lines(arguments.write / f"gold.{lang}", side)
    words = [sum(len(line.split()) for line in side) for side in lines]
    sure, possible = (sum(len(each) for each in side) for side in zip(*gold, strict=True))
    print(f"{len(gold)} pairs, {words[0]} and {words[1]} words, {sure} sure links and {possible - sure} possible ones")
    train = read_split(arguments.multi30k, "train")
    aer = alignment_error_rate(model_1_links(train, lines), gold)
    print(f"IBM Model 1, trained on the training text: AER {aer:.4f}")
    if arguments.eflomal:
        found = {name: agreement(links, gold) for name, links in eflomal_links(train, lines).items()}
        for name, scores in found.items():
            print(f"eflomal, {name}: {', '.join(f'{score} {value:.4f}' for score, value in scores.items())}")
        arguments.eflomal.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
