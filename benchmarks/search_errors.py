"""How often beam search misses the translation that a model holds to be the most probable, and what it costs to know.

Searches the sentences of a file exactly (Stahlberg & Byrne 2019, arXiv:1908.10090) and writes a line for each: its
number, beam search's and the best log probability, and remarks: ``error`` (beam search's is not the best), ``empty``
(the best has no words), ``unproven`` (--nodes were used up).
"""

import argparse
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from softsearch.app import open_any
from softsearch.search import ExactSearch, Hypothesis
from softsearch.text import read_lines


def remarks(beam: Hypothesis, best: Hypothesis) -> list[str]:
    """What there is to say of a sentence."""
    found = {"error": best.tokens != beam.tokens, "empty": not best.tokens, "unproven": not best.optimal}
    return [name for name, holds in found.items() if holds]


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", help="a checkpoint, or a bundle's folder")
    parser.add_argument("sources", type=Path, help="sentences, one a line (plain, gzip or xz)")
    parser.add_argument("--sentences", type=int, default=50, help="the first so many of them")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=20_000, help="most prefixes looked at for a sentence")
    parser.add_argument("--min-length", type=float, default=0.0, help="tokens for each token of the source")
    return parser.parse_args()


def main() -> None:
    """Search, write the lines, and sum up on standard error."""
    options = parse_options()
    torch.set_num_threads(1)
    (system,) = open_any([options.system])
    src = [system.tokenizers[0].encode(line) for line in islice(read_lines(options.sources), options.sentences)]
    order = sorted(range(len(src)), key=lambda index: len(src[index]))  # those of like length are searched together
    search = ExactSearch(beam=options.beam, max_nodes=options.nodes, min_length_factor=options.min_length)
    started = time.process_time()
    by_length = [src[index] for index in order]
    exact = search(system.step_fn, by_length)
    seconds = time.process_time() - started
    beam = search.options(system.step_fn, by_length)
    lines = [(*beam[i], *exact[i], remarks(*beam[i], *exact[i])) for i in np.argsort(order)]
    for number, (first, best, said) in enumerate(lines, start=1):
        print(number, f"{first.log_prob:.4f}", f"{best.log_prob:.4f}", *said, sep="\t")
    counts = {name: sum(name in said for _, _, said in lines) for name in ("error", "empty", "unproven")}
    print(
        f"{len(src)} sentences, beam {options.beam}: {counts['error'] / len(src):.1%} search errors, "
        f"{counts['empty'] / len(src):.1%} empty, {counts['unproven']} unproven; {seconds:.1f} CPU seconds",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
