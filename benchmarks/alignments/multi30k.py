"""The 300 sentence pairs of Multi30k whose words were aligned by reading, and how far IBM Model 1 is from these links.

    python benchmarks/alignments/multi30k.py MULTI30K --write FOLDER

MULTI30K has the lower-cased, tokenised files; FOLDER gets the pairs, ``gold.en`` and ``gold.de``.
"""

import argparse
import hashlib
import random
from pathlib import Path

from softsearch.data.corpora.multi30k import Multi30k
from softsearch.errors import CorpusError
from softsearch.evaluation.alignment_error import Gold, alignment_error_rate, read_gold
from softsearch.extras.claims.analyses.aligners import model_1_links
from softsearch.text.corpus import read_lines, write_lines

LINKS = Path(__file__).with_name("multi30k_val.links")  # Pharaoh: sure 0-0, possible 0?0; English before German
PAIRS = Path(__file__).with_name("multi30k_val.pairs")  # for each line of LINKS: number of the pair, from 1, and hash
SEED, SIZE = 1, 300
Lines = tuple[list[str], list[str]]


def read_split(folder: Path, split: str) -> Lines:
    """The English and the German lines of ``train`` or ``val``."""
    src, tgt = Multi30k(root=folder).files(folder)[split]
    return list(read_lines(src)), list(read_lines(tgt))


def sample(pairs: int) -> list[int]:
    """The numbers of the pairs that are aligned, from 1."""
    return sorted(random.Random(SEED).sample(range(1, pairs + 1), SIZE))


def fingerprint(source: str, target: str) -> str:
    """What PAIRS has of a sentence pair."""
    return hashlib.sha256(f"{source}\t{target}".encode()).hexdigest()[:16]


def read_aligned(folder: Path) -> tuple[Lines, list[Gold]]:
    """The aligned pairs, sources and targets, and their links.

    Raises:
        CorpusError: a file is missing, or a sentence is another one than was aligned.
    """
    sources, targets = read_split(folder, "val")
    found: Lines = ([], [])
    for number, expected in (line.split() for line in read_lines(PAIRS)):
        pair = [side[int(number) - 1] if int(number) <= len(side) else "" for side in (sources, targets)]
        if fingerprint(*pair) != expected:
            raise CorpusError(
                f"line {number} of val.*.en and val.*.de in {folder} is {' ||| '.join(pair)[:80]!r}, which is not the "
                "pair that was aligned; take Multi30k's lower-cased, tokenised files"
            )
        for side, line in zip(found, pair, strict=True):
            side.append(line)
    lengths = [(len(src.split()), len(tgt.split())) for src, tgt in zip(*found, strict=True)]
    return found, read_gold(LINKS, lengths, first=0)


def main() -> None:
    """Prints counts and the alignment error rate of IBM Model 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("multi30k", type=Path)
    parser.add_argument("--write", type=Path, help="write the pairs to this folder")
    arguments = parser.parse_args()
    lines, gold = read_aligned(arguments.multi30k)
    if arguments.write:
        arguments.write.mkdir(parents=True, exist_ok=True)
        for side, lang in zip(lines, ("en", "de"), strict=True):
            write_lines(arguments.write / f"gold.{lang}", side)
    words = [sum(len(line.split()) for line in side) for side in lines]
    sure, possible = (sum(len(each) for each in side) for side in zip(*gold, strict=True))
    print(f"{len(gold)} pairs, {words[0]} and {words[1]} words, {sure} sure links and {possible - sure} possible ones")
    aer = alignment_error_rate(model_1_links(read_split(arguments.multi30k, "train"), lines), gold)
    print(f"IBM Model 1, trained on the training text: AER {aer:.4f}")


if __name__ == "__main__":
    main()
