"""How well each measure of confidence finds bad translations: the area under the ROC curve.

    python benchmarks/confidence.py --bundle BUNDLE --src TEST.en --ref TEST.de

A translation is bad where its chrF with the reference is among the lowest quarter (``--share``). The area is the
probability that a measure ranks a bad translation behind another one: 0.5 is chance, 1 perfect. Intervals are of a
paired bootstrap over sentences, also of the difference from TP, the mean log probability.
"""

import argparse
import gzip
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sacrebleu
from numpy.typing import NDArray

from softsearch import Translator
from softsearch.app import describe_machine
from softsearch.runtime import Translation

Measure = Callable[[Translation], float]
MEASURES: dict[str, Measure] = {  # the higher, the surer
    "TP, mean log probability": lambda found: found.confidence.mean_log_prob,
    "least log probability": lambda found: found.confidence.min_log_prob,
    "Softmax-Ent, entropy of the distributions": lambda found: -found.confidence.softmax_entropy,
    "Att-Ent, entropy of attention": lambda found: -found.confidence.attention_entropy,
    "agreement of samples": lambda found: found.confidence.agreement,
    "shorter source": lambda found: -len(found.src_pieces),
}


def read(path: Path) -> list[str]:
    """The lines of a file, plain or gzip."""
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode().splitlines()


def area(scores: NDArray[np.float64], bad: NDArray[np.bool_]) -> float:
    """The share of pairs of a good and a bad translation of which the good one has the higher score; ties are half."""
    order = np.argsort(scores, kind="stable")
    _, inverse, counts = np.unique(scores[order], return_inverse=True, return_counts=True)
    ranks = np.empty(len(scores))
    ranks[order] = (np.cumsum(counts) - (counts - 1) / 2)[inverse]  # mean rank of equal scores, from 1
    good = ~bad
    return float((ranks[good].sum() - good.sum() * (good.sum() + 1) / 2) / (good.sum() * bad.sum()))


def main() -> None:
    """Translates, measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--share", type=float, default=0.25, help="of the translations that are bad")
    parser.add_argument("--resamples", type=int, default=1000)
    arguments = parser.parse_args()
    src, references = read(arguments.src), read(arguments.ref)
    translator, seconds = Translator(arguments.bundle), []
    translator.translate(src[:50], beam=arguments.beam)  # warm
    for options in ({}, {"confidence": True}, {"agreement": arguments.samples}):
        began = time.process_time()
        found = translator.translate(src, beam=arguments.beam, **options)
        seconds.append(time.process_time() - began)
    metric = sacrebleu.metrics.CHRF()
    quality = np.array([metric.sentence_score(f.text, [r]).score for f, r in zip(found, references, strict=True)])
    threshold = float(np.quantile(quality, arguments.share))
    bad = quality < threshold
    print(
        f"{describe_machine()}; beam {arguments.beam}; {bad.sum()} of {len(bad)} translations have a chrF below "
        f"{threshold:.1f}; CPU time {seconds[1] / seconds[0]:.2f} times that without confidence, "
        f"{seconds[2] / seconds[0]:.1f} times with {arguments.samples} samples\n"
    )
    scores = {name: np.array([measure(each) for each in found]) for name, measure in MEASURES.items()}
    first, *_ = scores
    generator, areas = np.random.default_rng(1), {name: [] for name in scores}
    for _ in range(arguments.resamples):
        drawn = generator.integers(len(bad), size=len(bad))
        for name, values in scores.items():
            areas[name].append(area(values[drawn], bad[drawn]))
    print("| measure | area under the ROC curve | less TP's | chrF of the surest quarter, of the least sure |")
    print("|---|---|---|---|")
    for name, values in scores.items():
        own, less = np.array(areas[name]), np.array(areas[name]) - np.array(areas[first])
        low, high, below, above = (*np.quantile(own, [0.025, 0.975]), *np.quantile(less, [0.025, 0.975]))
        order, quarter = np.argsort(values, kind="stable"), len(values) // 4
        difference = (
            ""
            if name == first
            else f"{area(values, bad) - area(scores[first], bad):+.3f} ({below:+.3f} to {above:+.3f})"
        )
        sure, unsure = quality[order[-quarter:]].mean(), quality[order[:quarter]].mean()
        print(
            f"| {name} | {area(values, bad):.3f} ({low:.3f} to {high:.3f}) | {difference} | {sure:.1f}, {unsure:.1f} |"
        )


if __name__ == "__main__":
    main()
