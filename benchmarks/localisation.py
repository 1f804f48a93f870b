"""Message catalogs: what a model, a memory and both translate, on catalogs that are held out of the training.

    python benchmarks/localisation.py FOLDER --out RESULTS --lang de              # FOLDER/de/**/*.po
    python benchmarks/localisation.py FOLDER --out RESULTS --lang de --by message --models memory
    python benchmarks/localisation.py FOLDER --out RESULTS --lang de --models plain,memory,raw  # and the text as it is
    python benchmarks/localisation.py FOLDER --out RESULTS --lang de,fr,fi,ja,cs,ar      # one model of all

FOLDER has the PO files of each language, such as those of LibreOffice (``apt-get source --download-only libreoffice``,
archive ``orig-translations``). For each language catalogs are held out, or single messages, and emptied; two models are
trained on the rest, one of them with ``data.memory=true``; ``softsearch localise`` fills the emptied catalogs; and what
stands in them is compared with the people's translations. Only messages whose text is nowhere in the training catalogs
are scored. BLEU and chrF are without what is not language (placeholders, tags), exact matches are of the whole text.
Several languages are one model, which each language's held-out messages are scored with: those of a call for that
language alone, whose source may be in the training text with a translation into another one. The model ``raw`` learns
from the same text as it is (``data=parallel``, symbols and accelerators in place) and translates the messages line by
line, with and without ``--markup``. Trainings go on where they were stopped, and what is done is not done again: with
``--record`` the texts of a model are kept in benchmarks/records, so that another machine goes on with the next model.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from localisation_scores import Unit, plain, report
from lxml import etree
from translate.misc.multistring import multistring
from translate.storage.pypo import pofile

from softsearch.extras.localise.similar import Texts, most_similar
from softsearch.text.parts import mask

RECORDS = Path(__file__).resolve().parent / "records" / "localisation"
WAYS = {  # of each model: what they are called in the tables
    "plain": {"without": "the model"},
    "memory": {"with": "the model with matches", "without": "without them"},
    "raw": {"plain": "text as it is", "markup": "text as it is, with --markup"},
}
MESSAGES = 1000  # new ones in the held-out catalogs, at least, and at most in each
SHARE = 0.0148  # of single messages that are held out
CONFIDENT = 90  # per cent; a match is taken from here on in "match, else model"


def units_of(store: Any) -> Iterator[Any]:
    """The translated units of a catalog."""
    for unit in store.units:
        if unit.istranslated() and not (unit.isheader() or unit.isfuzzy() or unit.isobsolete()):
            yield unit


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


def train(run: Path, data: Sequence[str], options: argparse.Namespace) -> None:
    """Trains a model, or goes on where an earlier training was stopped, and exports it."""
    if not (run / "metrics.json").exists():
        resume = ["resume=auto"] if (run / "checkpoints").exists() else []
        softsearch(
            "train", "experiment=speedrun", *data, "data.val=600", "data.test=null", "tokenizer.vocab_size=8000",
            f"seed={options.seed}", f"trainer.max_steps={options.steps}",
            "logger=csv", f"cache_dir={options.out / 'cache'}", f"hydra.run.dir={run}", *resume, *options.options,
        )  # fmt: skip
    if not (run / "bundle").exists():
        softsearch("export", f"ckpt={run}", f"out={run / 'bundle'}")


def catalogs(folders: Sequence[Path], *, memory: bool) -> list[str]:
    """The data of a model of messages: the catalogs that are not held out, of one language or several."""
    patterns = ",".join(str(folder / "train") for folder in folders)
    train = f"{{{patterns}}}" if len(folders) > 1 else patterns
    return ["data=catalogs", f"data.train='{train}'", f"data.memory={str(memory).lower()}"]


def raw_lines(folder: Path, lang: str) -> list[str]:
    """Writes the training text as it is, a line for each message, and returns it as the data of a model."""
    files = [folder / f"train.{code}" for code in ("en", lang)]
    if not all(file.exists() for file in files):
        stores = (pofile.parsefile(str(path)) for path in sorted((folder / "train").glob("*.po")))
        pairs = [
            (one_line(str(unit.source)), one_line(str(unit.target))) for store in stores for unit in units_of(store)
        ]
        for file, side in zip(files, zip(*pairs, strict=True), strict=True):
            file.write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    return ["data=parallel", f"data.train=[{files[0]},{files[1]}]", "data.filters.duplicates=true"]


def one_line(text: str) -> str:
    """A text without line breaks."""
    return " ".join(text.split())


def translate(units: Sequence[Unit], run: Path, *, markup: bool) -> list[str]:
    """What a model of plain text writes for each unit, line by line; with markup "" where the tags are no XML."""
    lines = [one_line(unit.source) for unit in units]
    taken = [number for number, line in enumerate(lines) if not markup or is_xml(line)]
    source = run / "source.txt"
    source.write_text("".join(f"{lines[number]}\n" for number in taken), encoding="utf-8")
    options = ["--markup"] if markup else []
    written = softsearch("translate", str(run / "bundle"), "--input", str(source), *options)
    found = dict(zip(taken, written.split("\n"), strict=False))
    return [found.get(number, "") for number in range(len(lines))]


def is_xml(text: str) -> bool:
    """Tells whether the tags and entities of a text are well-formed."""
    try:
        etree.fromstring(f"<x>{text}</x>")
    except etree.XMLSyntaxError:
        return False
    return True


def localise(folder: Path, bundle: Path, out: Path, *, memory: bool) -> None:
    """Fills the emptied catalogs."""
    more = ["--tgt", folder.name.partition("-")[0], *(["--memory", str(folder / "train")] if memory else [])]
    log = softsearch("localise", str(bundle), str(folder / "new"), "--out", str(out), *more)
    out.with_suffix(".log").write_text(log, encoding="utf-8")


def read(out: Path, units: Sequence[Unit]) -> list[str]:
    """What stands in the filled catalogs for each unit; "" where it was left alone."""
    texts = {}
    for catalog in {unit.catalog for unit in units}:
        path = out / catalog if out.is_dir() else out
        for unit in pofile.parsefile(str(path)).units:
            texts[catalog, unit.getcontext(), str(unit.source)] = str(unit.target)
    return [texts[unit.catalog, unit.context, unit.source] for unit in units]


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
    """Splits, trains, fills and prints tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="has a folder of PO files for each language")
    parser.add_argument("--out", type=Path, required=True, help="folder for splits, runs and results")
    parser.add_argument("--lang", required=True, help="folders in FOLDER, such as de, or de,fr for one model of both")
    parser.add_argument("--by", choices=("catalog", "message"), default="catalog", help="what is held out")
    parser.add_argument("--steps", type=int, default=4000, help="steps of each training (default: 4000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--models", default="plain,memory", help=f"those to train, of {', '.join(WAYS)} (default: plain,memory)"
    )
    parser.add_argument("--record", action="store_true", help="keep tables, texts, configs and metrics in the records")
    parser.add_argument("options", nargs="*", metavar="OPTION", help="more options of the trainings")
    options = parser.parse_intermixed_args()
    options.out = options.out.resolve()
    langs = options.lang.split(",")
    models = options.models.split(",")
    if not set(models) <= WAYS.keys():
        parser.error(f"--models is {options.models}, expected some of {','.join(WAYS)}")
    if "raw" in models and len(langs) > 1:
        parser.error("--models raw is for one language")
    folders = {lang: options.out / f"{lang}-{options.by}" for lang in langs}
    for lang, folder in folders.items():
        if not (folder / "units.json").exists():
            split(options.folder / lang, folder, options.by)
    home = options.out / f"{'+'.join(langs)}-{options.by}"
    data = {name: partial(catalogs, [*folders.values()], memory=name == "memory") for name in models}
    if "raw" in models:
        data["raw"] = partial(raw_lines, home, langs[0])
    for lang, folder in folders.items():
        score_language(lang, folder, home, data, options)


def run_of(home: Path, name: str, options: argparse.Namespace) -> Path:
    """The folder of a training."""
    return home / f"{name}-{options.steps}-{options.seed}"


def score_language(
    lang: str, folder: Path, home: Path, data: Mapping[str, Callable[[], list[str]]], options: argparse.Namespace
) -> None:
    """Lets the models of ``home`` fill the held-out catalogs in ``folder``, and reports."""
    units = [Unit(*each) for each in json.loads((folder / "units.json").read_text(encoding="utf-8"))]
    new = [index for index, unit in enumerate(units) if unit.is_new]
    chosen = [units[index] for index in new]
    similar, matches = nearest(folder, chosen)
    systems: dict[str, list[str]] = {"nearest translation of the memory": matches}
    of = "" if folder == home else f"{lang}-"
    for name, words in data.items():
        for way, title in WAYS[name].items():
            seconds, texts = texts_of(run_of(home, name, options), f"{of}{way}", words, folder, units, options)
            systems[title] = [texts[index] for index in new]
            print(f"{title}: {seconds:.0f} s, left alone {sum(not t for t in texts)} of {len(texts)} units")
        if name == "plain":
            systems[f"match from {CONFIDENT} % on, else the model"] = [
                match if ratio >= CONFIDENT else text
                for match, ratio, text in zip(matches, similar, systems["the model"], strict=True)
            ]
    models = "" if folder == home else f" by one model of {options.lang}"
    what = f"split by {options.by}: {len(chosen)} new messages; {options.steps} steps, seed {options.seed}"
    file = home / f"results-{of}{options.steps}-{options.seed}.md"
    report(file, f"{lang}{models}, {what}", chosen, lang, similar, systems)
    if options.record:
        shutil.copy(file, RECORDS / home.name)


def texts_of(
    run: Path, way: str, data: Callable[[], list[str]], folder: Path, units: Sequence[Unit], options: argparse.Namespace
) -> tuple[float, list[str]]:
    """The seconds that a model took and what it wrote, as it is kept; else it is trained, if need be, and fills."""
    kept = (RECORDS / run.parent.name if options.record else run) / f"{run.name}-{way}.json"
    if not kept.exists():
        train(run, data(), options)
        begin = time.perf_counter()
        if way in WAYS["raw"]:
            texts = translate(units, run, markup=way == "markup")
        else:
            out = run / f"filled-{way}"
            shutil.rmtree(out, ignore_errors=True)  # of a call that was stopped
            localise(folder, run / "bundle", out, memory=way.endswith("with"))
            texts = read(out, units)
        found = {"seconds": time.perf_counter() - begin, "texts": texts}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
        if options.record:
            record(run, options)
    found = json.loads(kept.read_text(encoding="utf-8"))
    return found["seconds"], found["texts"]


def record(run: Path, options: argparse.Namespace) -> None:
    """Copies config and metrics of a training to the records, without names of this machine's folders."""
    to = RECORDS / run.parent.name
    shutil.copy(run / "metrics.csv", to / f"{run.name}.csv")
    config = (run / "config.yaml").read_text(encoding="utf-8")
    config = config.replace(str(run.parent), "FOLDER").replace(str(options.out), "RESULTS")
    (to / f"{run.name}.yaml").write_text(config, encoding="utf-8")


if __name__ == "__main__":
    main()
