"""Adapting a Multi30k model to another domain: BLEU on both domains, beside training from scratch and on both.

    python benchmarks/adapt.py --base RUN --root MULTI30K --out FOLDER

The other domain is LibreOffice's help (MPL-2.0) of Debian's packages libreoffice-help-en-us and -de, which
`apt-get download` fetches: paragraphs of equal files pair up. RUN is a finished `experiment=speedrun data.variant=raw`
with dropout 0.2, whose model and schedule the new runs have. A run is skipped where its results are there; the table
goes to FOLDER/table.md.
"""

import argparse
import gzip
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import starmap
from pathlib import Path

from softsearch.app.environment import describe_machine

ROOT = Path(__file__).resolve().parents[1]
HELP = {"en": "en-us/usr/share/libreoffice/help/en-US", "de": "de/usr/share/libreoffice/help/de"}
TEST, VAL, SIZES = 1000, 500, (1000, 5000, 14000)
WAYS = {  # by name: options beside the data
    "adapted": ["init={base}"],
    "adapted, vocabulary grown": ["init={base}", "init.vocabulary=grow", "tokenizer.vocab_size=4000"],
    "from scratch": ["tokenizer.vocab_size=4000"],
    "adapted on both": ["init={base}"],
}
MODEL = [
    "experiment=speedrun", "data=parallel", "data.src_lang=en", "data.tgt_lang=de", "logger=csv", "overwrite=true",
    "model.encoder.dropout=0.2", "model.decoder.dropout=0.2",
]  # fmt: skip


class Paragraphs(HTMLParser):
    """The text of a page's paragraphs and headings."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._current: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Begins a paragraph."""
        if tag in ("p", "h1", "h2", "h3", "h4"):
            self._current = []

    def handle_endtag(self, tag: str) -> None:
        """Ends it, with its blanks made one."""
        if tag in ("p", "h1", "h2", "h3", "h4") and self._current is not None:
            self.found.append(" ".join("".join(self._current).split()))
            self._current = None

    def handle_data(self, data: str) -> None:
        """Adds text."""
        if self._current is not None:
            self._current.append(data)


def paragraphs(page: Path) -> list[str]:
    """The paragraphs of a page."""
    parser = Paragraphs()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser.found


def fetch(folder: Path) -> None:
    """Downloads and unpacks the two packages, unless they are there."""
    for name, lang in (("en-us", "en"), ("de", "de")):
        if not (folder / HELP[lang]).is_dir():
            subprocess.run(["apt-get", "download", f"libreoffice-help-{name}"], check=True, cwd=folder)
            (package,) = folder.glob(f"libreoffice-help-{name}_*.deb")
            subprocess.run(["dpkg-deb", "-x", package, folder / name], check=True)


def make_pairs(folder: Path) -> None:
    """Writes test, validation and training sides, in an order that depends on the text alone."""
    fetch(folder)
    pairs: dict[str, str] = {}
    for page in sorted((folder / HELP["en"]).rglob("*.html")):
        other = folder / HELP["de"] / page.relative_to(folder / HELP["en"])
        if other.is_file() and len(src := paragraphs(page)) == len(tgt := paragraphs(other)):
            pairs |= {s: t for s, t in zip(src, tgt, strict=True) if s != t and fits(s, 3) and fits(t, 2)}
    ordered = sorted(pairs.items(), key=lambda pair: hashlib.sha256(pair[0].encode()).hexdigest())
    rest = ordered[TEST + VAL :]
    sets = {"test": ordered[:TEST], "val": ordered[TEST : TEST + VAL]} | {f"train{n}": rest[:n] for n in SIZES}
    for name, chosen in sets.items():
        for lang, side in zip(("en", "de"), zip(*chosen, strict=True), strict=True):
            (folder / f"{name}.{lang}").write_text("\n".join(side) + "\n", encoding="utf-8")
    print(f"{len(pairs):,} pairs of paragraphs")


def fits(text: str, least: int) -> bool:
    """Whether a text is as long as a sentence."""
    return least <= len(text.split()) <= 40


def pair(folder: Path, name: str) -> str:
    """The two files of a text, as options have them."""
    return f"[{folder}/{name}.en,{folder}/{name}.de]"


def lab(command: str, *options: str) -> None:
    """Runs a command of the lab."""
    subprocess.run([sys.executable, str(ROOT / f"src/{command}.py"), *options], check=True, cwd=ROOT)


def bleu(run: Path, test: str, out: Path) -> float:
    """BLEU of a run's best checkpoint on a test set, kept in ``out``."""
    if not (out / "metrics.json").exists():
        lab("evaluate", f"ckpt={run}", f"test={test}", f"hydra.run.dir={out}", "heatmaps=0", "overlap=false")
    return float(json.loads((out / "metrics.json").read_text(encoding="utf-8"))["test/bleu"])


def both(arguments: argparse.Namespace, name: str, way: str, size: int, steps: int) -> tuple[float, float]:
    """BLEU of the other domain and of Multi30k after a training."""
    out: Path = arguments.out
    run, mixes = out / name, way.endswith("both")
    if not (run / "metrics.json").exists():
        train = f"[{pair(out, f'train{size}')},{pair(out, 'm30k')}]" if mixes else pair(out, f"train{size}")
        lab(
            "train", *MODEL, *(option.format(base=arguments.base) for option in WAYS[way]), f"data.train={train}",
            f"data.val={pair(out, 'val')}", f"data.test={pair(out, 'test')}", f"trainer.max_steps={steps}",
            f"hydra.run.dir={run}", f"optimizer.lr={'1e-3' if 'init' in WAYS[way][0] else '5e-3'}",
        )  # fmt: skip
    return bleu(run, pair(out, "test"), run / "new"), bleu(run, pair(out, "m30k_test"), run / "old")


def main() -> None:
    """Trains what is missing and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="the run to adapt")
    parser.add_argument("--root", type=Path, required=True, help="the folder of Multi30k")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    if not (out / f"train{SIZES[-1]}.de").exists():
        make_pairs(out)
    for name, source in (("m30k", "train"), ("m30k_test", "test_2016_flickr")):
        for lang in ("en", "de"):
            (out / f"{name}.{lang}").write_bytes(gzip.decompress((arguments.root / f"{source}.{lang}.gz").read_bytes()))
    base = [bleu(arguments.base, pair(out, test), out / "base" / test) for test in ("test", "m30k_test")]
    rows = [("as it was", "", *base)]
    for way in arguments.ways:
        for size in SIZES:
            name = re.sub(r"\W+", "_", f"{way}_{size}")
            rows.append((way, f"{size:,}", *both(arguments, name, way, size, arguments.steps)))
            lines = ["| | pairs | LibreOffice's help | Multi30k |", "|---|---|---|---|"]
            lines += starmap("| {} | {} | {:.1f} | {:.1f} |".format, rows)
            (out / "table.md").write_text("\n".join([describe_machine(), "", *lines, ""]), encoding="utf-8")
    print((out / "table.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
