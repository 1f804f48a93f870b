"""CPU seconds of a bundle's search in blocks of steps and in single steps, interleaved."""

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
    parser.add_argument("--most", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    lines = options.lines.read_text(encoding="utf-8").splitlines()[: options.most]
    translator = Translator(Bundle.open(options.bundle), threads=1)
    seconds: dict[str, list[float]] = {"single steps": [], "blocks": []}
    texts: dict[str, list[str]] = {}
    for _ in range(options.rounds):
        for kind, spent in seconds.items():
            blocks.MOST = 0 if kind == "single steps" else options.sentences
            start = time.process_time()
            texts[kind] = [
                translation.text
                for at in range(0, len(lines), options.sentences)
                for translation in translator.translate(lines[at : at + options.sentences], beam=options.beam)
            ]
            spent.append(time.process_time() - start)
    for kind, spent in seconds.items():
        print(f"{kind}: {min(spent):.2f} CPU seconds, the least of {options.rounds} rounds")
    print(sum(one != other for one, other in zip(*texts.values(), strict=True)), "lines differ")


if __name__ == "__main__":
    main()
