"""Adapting a Multi30k model to another domain and to a language more, beside training from scratch and on both.

    python benchmarks/adapt.py --base RUN --root MULTI30K --out FOLDER

The other domain is LibreOffice's help (MPL-2.0) of Debian's packages libreoffice-help-en-us and -de, which
`apt-get download` fetches: paragraphs of equal files pair up. RUN is a finished `experiment=speedrun data.variant=raw`
with dropout 0.2, whose model and schedule the new runs have. The language more is French, with 5,000 pairs of Multi30k.
A run is skipped where its results are there; the tables go to FOLDER/table.md and FOLDER/french.md.
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

from softsearch.app import describe_machine

ROOT = Path(__file__).resolve().parents[1]
HELP = {"en": "en-us/usr/share/libreoffice/help/en-US", "de": "de/usr/share/libreoffice/help/de"}
TEST, VAL, SIZES = 1000, 500, (1000, 5000, 14000)
WAYS = {  # by name: options beside the data
    "adapted": ["init={base}"],
    "adapted, vocabulary grown": ["init={base}", "init.vocabulary=grow", "tokenizer.vocab_size=4000"],
    "from scratch": ["tokenizer.vocab_size=4000"],
    "grown, on both": ["init={base}", "init.vocabulary=grow", "tokenizer.vocab_size=4000"],
    "grown, half of each": ["init={base}", "init.vocabulary=grow", "tokenizer.vocab_size=4000", "data.temperature=100"],
}
MODEL = [
    "experiment=speedrun", "logger=csv", "overwrite=true", "model.encoder.dropout=0.2", "model.decoder.dropout=0.2",
]  # fmt: skip


FRENCH = 5000  # pairs of the language more
FRENCH_WAYS = {  # by name: options beside the tests
    "French beside German": [
        "init={base}", "init.vocabulary=grow", "data=multilingual", "~data.pairs.de", "~data.pairs.fr",
        "+data.pairs.de={{_target_: softsearch.data.Parallel, train: {de}, val: {de_val}}}",
        "+data.pairs.fr={{_target_: softsearch.data.Parallel, train: {fr}, val: {fr_val}}}",
        "data.temperature=5",
    ],
    "French alone, from scratch": ["data=parallel", "data.train={fr}", "data.val={fr_val}"],
}  # fmt: skip


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


def pair(folder: Path, name: str, lang: str = "de") -> str:
    """The two files of a text, as options have them."""
    return f"[{folder}/{name}.en,{folder}/{name}.{lang}]"


def lab(command: str, *options: str) -> None:
    """Runs a command of the lab."""
    subprocess.run([sys.executable, "-m", "softsearch", command, *options], check=True, cwd=ROOT)


def bleu(run: Path, test: str, out: Path) -> float:
    """BLEU of a run's best checkpoint on a test set, kept in ``out``."""
    if not (out / "metrics.json").exists():
        lab("evaluate", f"ckpt={run}", f"test={test}", f"hydra.run.dir={out}", "heatmaps=0", "overlap=false")
    return float(json.loads((out / "metrics.json").read_text(encoding="utf-8"))["test/bleu"])


def both(arguments: argparse.Namespace, name: str, way: str, size: int, steps: int) -> tuple[float, float]:
    """BLEU of the other domain and of Multi30k after a training."""
    out: Path = arguments.out
    run, mixes = out / name, way.endswith(("both", "each"))
    if not (run / "metrics.json").exists():
        train = f"[{pair(out, f'train{size}')},{pair(out, 'm30k')}]" if mixes else pair(out, f"train{size}")
        lab(
            "train", *MODEL, "data=parallel",
            *(option.format(base=arguments.base) for option in WAYS[way]), f"data.train={train}",
            f"data.val={pair(out, 'val')}", f"data.test={pair(out, 'test')}", f"trainer.max_steps={steps}",
            f"hydra.run.dir={run}",
        )  # fmt: skip
    return bleu(run, pair(out, "test"), run / "new"), bleu(run, pair(out, "m30k_test"), run / "old")


def french(arguments: argparse.Namespace) -> None:
    """Adds a language to the German model, and writes the table."""
    out: Path = arguments.out
    for split, source, count in (("m30k_fr", "train", FRENCH), ("m30k_fr_val", "val", None), ("m30k_val", "val", None)):
        for lang in ("en", "de") if split == "m30k_val" else ("en", "fr"):
            text = gzip.decompress((arguments.root / f"{source}.{lang}.gz").read_bytes()).splitlines(keepends=True)
            (out / f"{split}.{lang}").write_bytes(b"".join(text[:count]))
    test = f"[{out}/m30k_test.en,{out}/m30k_test_fr.fr]"
    (out / "m30k_test_fr.fr").write_bytes(gzip.decompress((arguments.root / "test_2016_flickr.fr.gz").read_bytes()))
    files = {name: pair(out, text, lang) for name, text, lang in (
        ("de", "m30k", "de"), ("de_val", "m30k_val", "de"), ("fr", "m30k_fr", "fr"), ("fr_val", "m30k_fr_val", "fr"),
    )}  # fmt: skip
    rows = []
    for way, options in FRENCH_WAYS.items():
        run = out / re.sub(r"\W+", "_", way)
        if not (run / "metrics.json").exists():
            given = (option.format(base=arguments.base, **files) for option in options)
            lab("train", *MODEL, *given, f"trainer.max_steps={2 * arguments.steps}", f"hydra.run.dir={run}")
        german = bleu(run, pair(out, "m30k_test"), run / "old") if "German" in way else None
        rows.append(f"| {way} | {bleu(run, test, run / 'new'):.1f} | {'' if german is None else f'{german:.1f}'} |")
    old = pair(out, "m30k_test")
    lab(
        "evaluate", f"ckpt=[{out}/French_beside_German,{arguments.base}]", f"test={old}", "heatmaps=0", "overlap=false",
        f"guard={{old: {old}, max_loss: 0.5}}", f"hydra.run.dir={out}/guard",
    )  # fmt: skip
    lines = [describe_machine(), "", "| | French | German |", "|---|---|---|", *rows]
    (out / "french.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    print((out / "french.md").read_text(encoding="utf-8"))


def main() -> None:
    """Trains what is missing and writes the tables."""
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
    french(arguments)


if __name__ == "__main__":
    main()
