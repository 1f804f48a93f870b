"""Message catalogs: what a model, a memory and both translate, on catalogs that are held out of the training.

    python benchmarks/localisation.py FOLDER --out RESULTS --lang de              # FOLDER/de/**/*.po
    python benchmarks/localisation.py FOLDER --out RESULTS --lang de --by message --memory-only

FOLDER has the PO files of each language, such as those of LibreOffice (``apt-get source --download-only libreoffice``,
archive ``orig-translations``). For each language catalogs are held out, or single messages, and emptied; two models are
trained on the rest, one of them with ``data.memory=true``; ``softsearch localise`` fills the emptied catalogs; and what
stands in them is compared with the people's translations. Only messages whose text is nowhere in the training catalogs
are scored. BLEU and chrF are without what is not language (placeholders, tags), exact matches are of the whole text.
Trainings go on where they were stopped, and what is done is not done again.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import sacrebleu
from sacrebleu.significance import PairedTest
from translate.misc.multistring import multistring
from translate.storage.pypo import pofile

from softsearch.app import describe_machine
from softsearch.extras.localise.similar import Texts, most_similar
from softsearch.text.parts import mask, spans_of

ROOT = Path(__file__).resolve().parents[1]
BUCKETS = ((0, 50), (50, 70), (70, 85), (85, 101))  # similarity of the nearest message in training, per cent
MESSAGES = 1000  # new ones in the held-out catalogs, at least, and at most in each
SHARE = 0.0148  # of single messages that are held out
CONFIDENT = 90  # per cent; a match is taken from here on in "match, else model"
SYMBOL = re.compile(r"<\d+>")


class Unit(NamedTuple):
    """A message that is held out."""

    catalog: str
    context: str
    source: str
    target: str
    is_new: bool  # its text is nowhere in training


def units_of(store: Any) -> Iterator[Any]:
    """The translated units of a catalog."""
    for unit in store.units:
        if unit.istranslated() and not (unit.isheader() or unit.isfuzzy() or unit.isobsolete()):
            yield unit


def plain(text: str) -> str:
    """A text without its accelerator."""
    return text.replace("~", "", 1) if text.count("~") == 1 else text


def key_of(text: str) -> str:
    """What two messages of the same text have in common."""
    return " ".join(plain(text).casefold().split())


def draw(text: str) -> float:
    """A number from 0 to 1 that the text determines."""
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") / 2**64


def split(folder: Path, out: Path, by: str) -> None:
    """Writes the catalogs of training to out/train, the emptied ones to out/new, and the translations to out/units."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.po"))
    stores = {name: pofile.parsefile(str(folder / name)) for name in names}
    keys = {name: [key_of(str(unit.source)) for unit in units_of(store)] for name, store in stores.items()}
    held_out: set[str] = set()
    if by == "catalog":
        total = Counter(key for each in keys.values() for key in each)
        for name in sorted((name for name in names if len(keys[name]) <= MESSAGES), key=draw):
            total -= (own := Counter(keys[name]))
            held_out.add(name)
            if sum(1 for other in held_out for key in set(keys[other]) if not total[key]) >= MESSAGES and own:
                break
    training = {key for name, each in keys.items() if name not in held_out for key in each}
    found: list[Unit] = []
    single, seen = pofile(), set[str]()
    for name, store in stores.items():
        flat = name.replace("/", "__")
        for unit in list(units_of(store)):
            source, key = str(unit.source), key_of(str(unit.source))
            chosen = name in held_out if by == "catalog" else draw(key) < SHARE
            if not chosen:
                continue
            is_new = by == "message" or key not in training
            target = str(unit.target)
            unit.target = multistring([""] * len(unit.target.strings)) if unit.hasplural() else ""
            if by == "message" and key in seen:
                continue
            seen.add(key)
            found.append(Unit(flat if by == "catalog" else "new.po", unit.getcontext(), source, target, is_new))
            if by == "message":
                single.units.append(unit)
        path = out / ("new" if name in held_out else "train") / flat
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(store))
    if by == "message":
        header = next(unit for unit in stores[names[0]].units if unit.isheader())
        single.units.insert(0, header)
        (out / "new").mkdir(exist_ok=True)
        (out / "new" / "new.po").write_bytes(bytes(single))
    (out / "units.json").write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")


def softsearch(*arguments: str) -> str:
    """Runs a command of softsearch and returns what it prints."""
    command = [sys.executable, "-m", "softsearch", *arguments]
    print("$ softsearch", *arguments, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}\nlocalisation: this failed with exit code {done.returncode}")
    return done.stdout


def train(folder: Path, run: Path, options: argparse.Namespace, *, memory: bool) -> None:
    """Trains a model, or goes on where an earlier training was stopped, and exports it."""
    if not (run / "metrics.json").exists():
        resume = ["resume=auto"] if (run / "checkpoints").exists() else []
        softsearch(
            "train", "experiment=speedrun", "data=catalogs", f"data.train={folder / 'train'}", "data.val=600",
            "data.test=null", f"data.memory={str(memory).lower()}", "tokenizer.vocab_size=8000", f"seed={options.seed}",
            f"trainer.max_steps={options.steps}",
            "logger=csv", f"cache_dir={options.out / 'cache'}", f"hydra.run.dir={run}", *resume, *options.options,
        )  # fmt: skip
    if not (run / "bundle").exists():
        softsearch("export", f"ckpt={run}", f"out={run / 'bundle'}")


def localise(folder: Path, bundle: Path, out: Path, *, memory: bool) -> float:
    """Fills the emptied catalogs; returns the seconds from command to files."""
    begin = time.perf_counter()
    done = out.with_suffix(".log")
    if not done.exists():
        more = ["--memory", str(folder / "train")] if memory else []
        log = softsearch("localise", str(bundle), str(folder / "new"), "--out", str(out), *more)
        seconds = time.perf_counter() - begin
        done.write_text(f"{log}seconds {seconds:.1f}\n", encoding="utf-8")
    return float(done.read_text(encoding="utf-8").split()[-1])


def read(out: Path, units: Sequence[Unit]) -> list[str]:
    """What stands in the filled catalogs for each unit; "" where it was left alone."""
    texts = {}
    for catalog in {unit.catalog for unit in units}:
        path = out / catalog if out.is_dir() else out
        for unit in pofile.parsefile(str(path)).units:
            texts[catalog, unit.getcontext(), str(unit.source)] = str(unit.target)
    return [texts[unit.catalog, unit.context, unit.source] for unit in units]


def language_alone(texts: Iterable[str]) -> list[str]:
    """Texts without what is not language, and without accelerators."""
    return [" ".join(SYMBOL.sub(" ", mask(plain(text)).text).split()) for text in texts]


def is_wrong(source: str, target: str) -> bool:
    """Tells whether a translation has other placeholders or tags than its message, or no or another accelerator."""
    spans = [Counter(text[begin:end] for begin, end in spans_of(text)) for text in (source, target)]
    return spans[0] != spans[1] or (source.count("~") == 1) != (target.count("~") == 1)


class Scores(NamedTuple):
    """How translations compare with references."""

    bleu: float
    chrf: float
    exact: float
    left: int
    wrong: int

    def row(self) -> str:
        return f"{self.bleu:.1f} | {self.chrf:.1f} | {self.exact:.1%} | {self.left} | {self.wrong}"


def score(units: Sequence[Unit], texts: Sequence[str], lang: str) -> Scores:
    """Scores of some units; those that were left alone count as empty."""
    hypotheses, references = language_alone(texts), language_alone(unit.target for unit in units)
    tokenize = "char" if lang in ("ja", "zh") else "13a"
    return Scores(
        sacrebleu.corpus_bleu(hypotheses, [references], tokenize=tokenize).score,
        sacrebleu.corpus_chrf(hypotheses, [references]).score,
        sum(text == unit.target for text, unit in zip(texts, units, strict=True)) / len(units),
        sum(not text for text in texts),
        sum(bool(text) and is_wrong(unit.source, text) for text, unit in zip(texts, units, strict=True)),
    )


def nearest(folder: Path, units: Sequence[Unit]) -> tuple[list[float], list[str]]:
    """The similarity of the nearest message in training, in per cent, and its translation, however bad."""
    memory: dict[str, str] = {}
    for path in sorted((folder / "train").glob("*.po")):
        for unit in units_of(pofile.parsefile(str(path))):
            memory.setdefault(mask(plain(str(unit.source))).text, plain(str(unit.target)))
    sources = [mask(plain(unit.source)).text for unit in units]
    found = most_similar(sources, Texts(memory), least=0.0)
    targets = list(memory.values())
    return [each.similarity if each else 0.0 for each in found], [targets[each.place] if each else "" for each in found]


def main() -> None:
    """Splits, trains, fills and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="has a folder of PO files for each language")
    parser.add_argument("--out", type=Path, required=True, help="folder for splits, runs and results")
    parser.add_argument("--lang", required=True, help="a folder in FOLDER, such as de")
    parser.add_argument("--by", choices=("catalog", "message"), default="catalog", help="what is held out")
    parser.add_argument("--steps", type=int, default=4000, help="steps of each training (default: 4000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory-only", action="store_true", help="do not train the model without a memory")
    parser.add_argument("--record", action="store_true", help="copy tables, configs and metrics to benchmarks/records")
    parser.add_argument("options", nargs="*", metavar="OPTION", help="more options of the trainings")
    options = parser.parse_args()
    folder = (options.out / f"{options.lang}-{options.by}").resolve()
    if not (folder / "units.json").exists():
        split(options.folder / options.lang, folder, options.by)
    units = [Unit(*each) for each in json.loads((folder / "units.json").read_text(encoding="utf-8"))]
    new = [index for index, unit in enumerate(units) if unit.is_new]
    chosen = [units[index] for index in new]
    similar, matches = nearest(folder, chosen)
    systems: dict[str, list[str]] = {"nearest translation of the memory": matches}
    seconds = {}
    for name in ("memory",) if options.memory_only else ("plain", "memory"):
        run = folder / f"{name}-{options.steps}-{options.seed}"
        train(folder, run, options, memory=name == "memory")
        ways = {"plain": {"the model": False}, "memory": {"the model with matches": True, "without them": False}}[name]
        for way, memory in ways.items():
            out = run / f"filled-{'with' if memory else 'without'}"
            seconds[way] = localise(folder, run / "bundle", out, memory=memory)
            texts = read(out, units)
            systems[way] = [texts[index] for index in new]
            print(f"{way}: {seconds[way]:.0f} s, left alone {sum(not t for t in texts)} of {len(texts)} units")
        if name == "plain":
            systems[f"match from {CONFIDENT} % on, else the model"] = [
                match if ratio >= CONFIDENT else text
                for match, ratio, text in zip(matches, similar, systems["the model"], strict=True)
            ]
    report(folder, options, chosen, similar, systems)
    if options.record:
        record(folder, options)


def record(folder: Path, options: argparse.Namespace) -> None:
    """Copies what shows the results to benchmarks/records, without names of this machine's folders."""
    to = ROOT / "benchmarks" / "records" / "localisation" / folder.name
    to.mkdir(parents=True, exist_ok=True)
    run = f"{options.steps}-{options.seed}"
    shutil.copy(folder / f"results-{run}.md", to)
    for name in ("plain", "memory"):
        if (trained := folder / f"{name}-{run}").exists():
            shutil.copy(trained / "metrics.csv", to / f"{trained.name}.csv")
            config = (trained / "config.yaml").read_text(encoding="utf-8")
            config = config.replace(str(folder), "FOLDER").replace(str(options.out.resolve()), "RESULTS")
            (to / f"{trained.name}.yaml").write_text(config, encoding="utf-8")


def report(
    folder: Path, options: argparse.Namespace, units: list[Unit], similar: list[float], systems: dict[str, list[str]]
) -> None:
    """Prints and writes the tables."""
    lines = [
        f"{options.lang}, split by {options.by}: {len(units)} new messages; {options.steps} steps, seed {options.seed}",
        describe_machine(),
        "",
        "| | BLEU | chrF | exact | left alone | placeholders, tags or accelerator wrong |",
        "|---|---|---|---|---|---|",
        *(f"| {name} | {score(units, texts, options.lang).row()} |" for name, texts in systems.items()),
        "",
        f"| BLEU by nearest message | {' | '.join(f'{a} to {min(b, 100)}' for a, b in BUCKETS)} |",
        f"|---|{'---|' * len(BUCKETS)}",
    ]
    buckets = [[i for i, ratio in enumerate(similar) if a <= ratio < b] for a, b in BUCKETS]
    lines.append(f"| messages | {' | '.join(str(len(bucket)) for bucket in buckets)} |")
    for name, texts in systems.items():
        cells = [
            f"{score([units[i] for i in bucket], [texts[i] for i in bucket], options.lang).bleu:.1f}" if bucket else "-"
            for bucket in buckets
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", *significance(units, systems, options.lang)]
    (folder / f"results-{options.steps}-{options.seed}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def significance(units: list[Unit], systems: dict[str, list[str]], lang: str) -> list[str]:
    """The p-value of each system against the model with matches, by paired bootstrap."""
    metric = sacrebleu.BLEU(tokenize="char" if lang in ("ja", "zh") else "13a", references=None)
    best, *others = sorted(systems, key="the model with matches".__ne__)
    named = [(name, language_alone(systems[name])) for name in (best, *others)]
    references = [language_alone(unit.target for unit in units)]
    _, scores = PairedTest(named, {"BLEU": metric}, references, test_type="bs", n_samples=1000)()
    results = scores["BLEU"]
    return [
        f"p against {best}: {name} {result.p_value:.3f}"
        for (name, _), result in zip(named[1:], results[1:], strict=True)
    ]


if __name__ == "__main__":
    main()
