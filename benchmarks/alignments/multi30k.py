"""The 300 sentence pairs of Multi30k whose words were aligned by reading, and how far IBM Model 1 is from these links.

    python benchmarks/alignments/multi30k.py MULTI30K --write FOLDER

MULTI30K has the lower-cased, tokenised files; FOLDER gets the pairs, ``gold.en`` and ``gold.de``.
"""

import argparse
import random
from pathlib import Path

from softsearch.data import Multi30k
from softsearch.evaluation import alignment_error_rate
from softsearch.extras.claims.analyses.aligners import Lines, aligned_captions, model_1_links
from softsearch.text import read_lines, write_lines

SEED, SIZE = 1, 300


def read_split(folder: Path, split: str) -> Lines:
    """The English and the German lines of ``train`` or ``val``."""
    src, tgt = Multi30k(root=folder).files(folder)[split]
    return list(read_lines(src)), list(read_lines(tgt))


def sample(pairs: int) -> list[int]:
    """The numbers of the pairs that are aligned, from 1."""
    return sorted(random.Random(SEED).sample(range(1, pairs + 1), SIZE))


def main() -> None:
    """Prints counts and the alignment error rate of IBM Model 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("multi30k", type=Path)
    parser.add_argument("--write", type=Path, help="write the pairs to this folder")
    arguments = parser.parse_args()
    lines, gold = aligned_captions(read_split(arguments.multi30k, "val"))
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
