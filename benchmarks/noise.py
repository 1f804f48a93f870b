"""What noise while training gains on noisy text and costs on clean text: BLEU on copies of Multi30k's test_2016_flickr.

    python benchmarks/noise.py --root MULTI30K --out FOLDER

Trains `experiment=speedrun data.variant=raw` with noise=none and with noise=usual, and translates one copy of the test
set for each kind of noise. A run or a score is skipped where its results are there; the table goes to FOLDER/table.md.
"""

import argparse
import gzip
from pathlib import Path

from adapt import bleu, lab, pair

from softsearch.app import describe_machine
from softsearch.text import Noise

COPIES = {  # by name: what is done to every pair; of merged ones the next is taken away
    "clean": Noise(),
    "upper": Noise(upper=1),
    "title": Noise(title=1),
    "lower": Noise(lower=1),
    "end_punctuation": Noise(end_punctuation=1),
    "merge": Noise(merge=1),
    "typos": Noise(typos=0.1),
    "more_typos": Noise(typos=0.3),
}
RUNS = ("none", "usual")
SEED = 1


def make_copies(root: Path, out: Path) -> None:
    """Writes the copies of the test set, which depend on its text alone."""
    sides = [gzip.decompress((root / f"test_2016_flickr.{lang}.gz").read_bytes()).decode() for lang in ("en", "de")]
    pairs = list(zip(*(side.splitlines() for side in sides), strict=True))
    for name, noise in COPIES.items():
        step = 2 if noise.merge else 1
        noisy = [noise(pairs[at : at + step], range(at, at + step), SEED)[0] for at in range(0, len(pairs), step)]
        for lang, lines in zip(("en", "de"), zip(*noisy, strict=True), strict=True):
            (out / f"{name}.{lang}").write_text("\n".join(lines) + "\n", encoding="utf-8")


def train(root: Path, out: Path, noise: str, steps: int) -> Path:
    """The run with this noise, trained if need be."""
    run = out / f"noise_{noise}"
    if not (run / "metrics.json").exists():
        lab(
            "train", "experiment=speedrun", "data.variant=raw", f"data.root={root}", f"noise={noise}", "logger=csv",
            "overwrite=true", f"trainer.max_steps={steps}", f"hydra.run.dir={run}",
        )  # fmt: skip
    return run


def main() -> None:
    """Trains and measures what is missing and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="the folder of Multi30k")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1500)
    arguments = parser.parse_args()
    root, out = arguments.root.resolve(), arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    make_copies(root, out)
    found = {noise: dict[str, float]() for noise in RUNS}
    for noise in RUNS:
        run = train(root, out, noise, arguments.steps)
        for copy in COPIES:
            found[noise][copy] = bleu(run, pair(out, copy), run / copy)
            lines = [f"| test set | {' | '.join(f'noise={name}' for name in RUNS)} |", "|---" * (1 + len(RUNS)) + "|"]
            for name in COPIES:
                cells = (f"{found[each][name]:.1f}" if name in found[each] else "" for each in RUNS)
                lines.append(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |")
            (out / "table.md").write_text("\n".join([describe_machine(), "", *lines, ""]), encoding="utf-8")
    print((out / "table.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
