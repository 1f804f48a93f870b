"""``history``: all translation architectures, trained with the same budget, on one page."""

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

from sacrebleu import CHRF

from softsearch import lab
from softsearch.app import build, composed, echo, nearest
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.extras.claims.claim import Plan
from softsearch.extras.claims.options import History
from softsearch.extras.claims.trainings import Training, train_all, trainings
from softsearch.files import MANIFEST
from softsearch.runtime import Bundle, run_command
from softsearch.text import ParallelCorpus, detokenize, read_parallel

log = logging.getLogger(__name__)
ABOUT = "about.json"
Values = Mapping[str, Sequence[float]]  # a value for each test sentence, by name
_EXAMPLES = {
    "long sentences": "A long sentence",
    "rare words": "A rare word",
    "another word order": "Another word order",
}


def history(options: History) -> None:
    """Runs the unfinished trainings, exports the models, and writes the page.

    Raises:
        SoftsearchError: a model is unknown, one of its options is wrong, or a training failed.
    """
    facts = options.about.models
    names = options.models or tuple(facts)
    for name in names:
        if name not in facts:
            raise ConfigError(f"models: about.models has no {name!r}; {nearest(name, facts)}")
    needed = trainings(Plan(runs={name: options.budget.run(name) for name in names}, seeds=(1,)), options)
    if options.dry_run:
        return echo("\n".join(f"{each.command}{' # finished' * each.finished}" for each in needed))
    page: dict[str, Any] = {"title": options.about.title, "text": options.about.text}
    options.run_dir.mkdir(parents=True, exist_ok=True)
    path = options.run_dir / ABOUT
    path.write_text(json.dumps({**page, "models": {name: facts[name] for name in names}}), encoding="utf-8")
    run_command(["web", "--about", str(path)])  # to check the file before training for hours
    data = {each.run: composed("train", *each.overrides, "name=NAME", "run_dir=RUN").data for each in needed}
    if backwards := [run for run in data if data[run].reverse_source or data[run].target_direction != "l2r"]:
        wanted = "[data.reverse_source=false,data.target_direction=l2r]"
        raise ConfigError(
            f"{', '.join(backwards)}: reads or writes from the end of a text to its start, which the page does not "
            "support; add " + " ".join(f"'++budget.options.{run}={wanted}'" for run in backwards)
        )
    source = build(data[needed[0].run])
    files = source.files(options.cache_dir)
    if "test" not in files:
        raise ConfigError(f"the data has the splits {', '.join(files)}, expected also test, to compare models on")
    train_all(needed, options.jobs)
    test = read_parallel(*files["test"], keep_empty=True)
    chrf = {each.run: _chrf(each.folder, test.tgt) for each in needed}
    hard = difficulties(read_parallel(*files["train"]), test)
    bundles = {each.run: _exported(each, options.cache_dir) for each in needed}
    titles = {name: str(facts[name].get("title") or name) for name in names}
    shown = [detokenize(line) if source.text_form == "lc_tok" else line for line in test.src]
    about = {
        **page,
        "examples": [{"text": shown[index], "note": note} for index, note in examples(hard, chrf, titles)],
        "models": {each.run: _measured_facts(each, facts[each.run], bundles[each.run], hard, chrf) for each in needed},
    }
    path.write_text(json.dumps(about, ensure_ascii=False, indent=1), encoding="utf-8")
    run_command(["web", *map(str, bundles.values()), "--out", str(options.out), "--about", str(path)])
    return None


def _chrf(folder: Path, references: Sequence[str]) -> list[float]:
    lines = lab.Run(folder).translations()
    return [CHRF().sentence_score(line, [reference]).score for line, reference in zip(lines, references, strict=True)]


def difficulties(train: ParallelCorpus, test: ParallelCorpus) -> Values:
    """Measures the difficulty of each test sentence: source words, frequency of the rarest, and crossing links.

    Each target word is linked to the source word with the greatest Dice coefficient in the training text; the last
    value is the share of pairs of target words whose links cross.
    """
    sides = [[set(line.split()) for line in side] for side in (train.src, train.tgt)]
    src, tgt = (Counter(word for words in side for word in words) for side in sides)
    both = Counter(pair for pair in zip(*sides, strict=True) for pair in product(*pair))

    def crossing(source: list[str], target: list[str]) -> float:
        links = [
            max(range(len(source)), key=lambda i: both[source[i], w] / (src[source[i]] + tgt[w] + 1)) for w in target
        ]
        return mean([left > right for left, right in combinations(links, 2)] or [0])

    pairs = [(line.split() or [""], reference.split()) for line, reference in zip(test.src, test.tgt, strict=True)]
    values = (
        [len(source) for source, _ in pairs],
        [-min(src[word] for word in source) for source, _ in pairs],
        [crossing(*pair) for pair in pairs],
    )
    return dict(zip(_EXAMPLES, values, strict=True))


def examples(hard: Values, chrf: Values, titles: Mapping[str, str]) -> list[tuple[int, str]]:
    """Chooses a test sentence per difficulty: among the hardest tenth, the one where models differ most in chrF."""
    chosen: dict[int, str] = {}
    for kind, values in hard.items():
        ranked = sorted((i for i in range(len(values)) if i not in chosen), key=lambda i: -values[i])
        scores = {i: {name: each[i] for name, each in chrf.items()} for i in ranked[: max(1, len(values) // 10)]}
        index = max(scores, key=lambda i: pstdev(scores[i].values()))
        order = sorted(scores[index], key=lambda name: -scores[index][name])
        best, worst = (f"{titles[name]} (chrF {scores[index][name]:.0f})" for name in (order[0], order[-1]))
        chosen[index] = f"{_EXAMPLES[kind]}. Best: {best}; worst: {worst}."
    return [*chosen.items()]


def first_errors(hard: Values, chrf: Sequence[float]) -> str:
    """Describes the difficulty with the largest loss of chrF, easiest against hardest third, if above 1 point."""

    def thirds(values: Sequence[float]) -> tuple[float, float]:
        order = sorted(range(len(values)), key=lambda i: values[i])
        third = max(1, len(order) // 3)
        return mean(chrf[i] for i in order[:third]), mean(chrf[i] for i in order[-third:])

    found = {kind: thirds(values) for kind, values in hard.items()}
    kind = max(found, key=lambda kind: found[kind][0] - found[kind][1])
    easy, difficult = found[kind]
    if easy - difficult < 1:
        return f"no kind of sentence more than another: chrF {mean(chrf):.0f} on average."
    return f"{kind}: chrF {easy:.0f} in the easiest third of the test set, {difficult:.0f} in the hardest."


def _exported(each: Training, cache_dir: Path) -> Path:
    """Exports the single graph of a training in int8, or in float32 if int8 is refused."""
    out = each.folder / "single" / each.run
    for precision in ("int8", "float32"):
        if (out / MANIFEST).is_file():
            break
        try:
            lab.export(each.folder, out, format="single", precision=precision, cache_dir=cache_dir)
        except SoftsearchError as error:
            if precision == "float32":
                raise
            log.warning("%s is exported in float32: %s", each.run, error)
    return out


def _measured_facts(
    each: Training, about: Mapping[str, Any], bundle: Path, hard: Values, chrf: Values
) -> Mapping[str, Any]:
    """Adds measurements to the facts about a model."""
    bleu = next(value for name, value in lab.Run(each.folder).metrics.items() if name.startswith("test/bleu"))
    facts = {**about, "bleu": bleu, "errors": first_errors(hard, chrf[each.run])}
    if not Bundle.open(bundle).manifest.trained("precision.name"):
        facts["note"] = f"{about.get('note', '')} In float32, because int8 was refused.".strip()
    return facts
