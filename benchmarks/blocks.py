"""CPU time of a bundle's search in blocks of steps and in single steps, in turns, the least of each text."""

import argparse
import time
from pathlib import Path

from softsearch import Bundle, Translator
from softsearch.search import blocks


def main() -> None:
    """Runs it: python benchmarks/blocks.py BUNDLE test.en."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1, help="at once")
    parser.add_argument("--most", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    lines = options.lines.read_text(encoding="utf-8").splitlines()[: options.most]
    texts = [lines[at : at + options.sentences] for at in range(0, len(lines), options.sentences)]
    translator = Translator(Bundle.open(options.bundle), threads=1)
    kinds = {"single steps": 0, "blocks": max(options.sentences, blocks.MAX_SENTENCES)}
    least = {kind: [float("inf")] * len(texts) for kind in kinds}
    differ = 0
    for turn in range(options.rounds):
        for number, text in enumerate(texts):
            found = {}
            for kind in sorted(kinds, reverse=(turn + number) % 2 == 0):
                blocks.MAX_SENTENCES = kinds[kind]
                start = time.process_time_ns()
                found[kind] = [translation.text for translation in translator.translate(text, beam=options.beam)]
                least[kind][number] = min(least[kind][number], (time.process_time_ns() - start) / 1e6)
            differ += found["single steps"] != found["blocks"]
    steps, in_blocks = (sum(least[kind]) / len(texts) for kind in kinds)
    print(f"single steps {steps:.2f} ms, blocks {in_blocks:.2f} ms of CPU time, {1 - in_blocks / steps:.1%} less")
    print(f"{differ} of {options.rounds * len(texts)} texts differ")


if __name__ == "__main__":
    main()
