"""The tables of a report."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from softsearch.evaluation.schema import Comparison, Report, SystemReport
from softsearch.report.page.markup import Markup, join, tag

_SIGNIFICANT = 0.05
_NAMES = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "ter": "TER",
    "lc": "lower-cased, tokenised",
    "no_unk": "no UNK",
    "exact_match": "exact match",
}
_SHARES = ("exact_match",)
_UNITS = ("bytes", "kB", "MB", "GB")
_FACTS: Mapping[str, Callable[[SystemReport], str]] = {
    "model": lambda s: s.architecture,
    "search": lambda s: s.search,
    "runs on": lambda s: s.backend,
    "parameters": lambda s: f"{s.parameters:,}",
    "size": lambda s: size(s.size_bytes),
    "sentences/s": lambda s: _speed(s.sentences_per_second),
    "tokens/s": lambda s: _speed(s.tokens_per_second),
    "length ratio": lambda s: f"{s.length_ratio:.3f}",
    "−log p per token": lambda s: "" if s.nll is None else f"{s.nll:.3f}",
    "AER": lambda s: "" if s.aer is None else f"{s.aer:.1%}",
}
_TEXTS = ("model", "search", "runs on")


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, texts: Iterable[int] = (0,)
) -> Markup:
    """A table that scrolls by itself where it is too wide; the first cell of a row names it.

    Args:
        caption: what it says.
        columns: their names.
        rows: of cells, text or markup.
        texts: which columns hold text; the others hold figures.
    """
    kinds = ["text" if place in set(texts) else "figure" for place in range(len(columns))]
    head = [tag("th", name, scope="col", class_=kind) for name, kind in zip(columns, kinds, strict=True)]
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row", class_=kinds[0]),
            *(tag("td", cell, class_=kind) for cell, kind in zip(row[1:], kinds[1:], strict=True)),
        )
        for row in rows
    ]
    whole = tag(
        "table",
        tag("caption", tag("span", caption)),
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
    )
    return tag("div", whole, class_="wide", role="region", tabindex=0, aria_label=caption)


def score_table(report: Report) -> Markup:
    """All scores with their intervals, and how sure the differences from the first system are."""
    keys = list(dict.fromkeys(key for system in report.systems for key in system.scores))
    against = {(c.system, c.metric): c for c in report.comparisons}
    rows = [
        [name(system), *(_score(key, system, against.get((system.name, key))) for key in keys)]
        for system in report.systems
    ]
    caption = "Scores with 95 % bootstrap intervals."
    if report.comparisons:
        caption += (
            f" Below them: the difference from {report.comparisons[0].baseline} and its p by paired bootstrap, "
            f"starred where p < {_SIGNIFICANT}."
        )
    if any(key.startswith("ter") for key in keys):
        caption += " Of TER, less is better."
    return table(caption, ["system", *map(_metric, keys)], rows)


def system_table(report: Report) -> Markup:
    """What the systems are, how large and how fast; facts that none has are left out."""
    facts = {fact: say for fact, say in _FACTS.items() if any(map(say, report.systems))}
    rows = [[name(system), *(say(system) for say in facts.values())] for system in report.systems]
    texts = [0, *(place for place, fact in enumerate(facts, 1) if fact in _TEXTS)]
    origins = [
        part for system in report.systems for part in (tag("dt", system.name), tag("dd", tag("code", system.origin)))
    ]
    return join(
        table("Models, their size and their speed on this machine.", ["system", *facts], rows, texts=texts),
        tag("details", tag("summary", "files"), tag("dl", *origins)),
    )


def signature_list(report: Report) -> Markup:
    """How the scores were computed."""
    signatures: dict[str, list[str]] = {}
    for system in report.systems:
        for key, score in system.scores.items():
            if score.signature and key not in signatures.setdefault(score.signature, []):
                signatures[score.signature].append(key)
    entries = [
        part
        for signature, keys in signatures.items()
        for part in (tag("dt", "; ".join(map(_metric, keys))), tag("dd", tag("code", signature)))
    ]
    return tag("details", tag("summary", "signatures"), tag("dl", *entries)) if entries else Markup()


def name(system: SystemReport) -> Markup:
    """The system's name, which may break anywhere."""
    return tag("span", system.name, class_="name")


def size(count: int) -> str:
    """Bytes as people say them."""
    value, power = float(count), 0
    while value >= 999.5 and power < len(_UNITS) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.3g} {_UNITS[power]}"


def _metric(key: str) -> str:
    """A key of ``SystemReport.scores`` in words, as in "BLEU, no UNK"."""
    if key in _NAMES:
        return _NAMES[key]
    first, _, rest = key.partition("_")
    return f"{_NAMES[first]}, {_NAMES.get(rest, rest.replace('_', ' '))}" if first in _NAMES else key.replace("_", " ")


def _score(key: str, system: SystemReport, against: Comparison | None) -> str:
    score = system.scores.get(key)
    if score is None:
        return ""
    unit, factor = ("\N{NO-BREAK SPACE}%", 100) if key in _SHARES else ("", 1)
    shown = tag("span", f"{score.value * factor:.1f}{unit}", class_="score")
    interval = tag("span", f"{score.low * factor:.1f} to {score.high * factor:.1f}", class_="interval")
    if key == "bleu_no_unk" and system.no_unk_sentences is not None:
        interval = join(interval, tag("span", f"{system.no_unk_sentences:,} sentences", class_="interval"))
    if against is None:
        return join(shown, interval)
    sure = against.p_value < _SIGNIFICANT
    p = f"p < {0.001}" if against.p_value < 0.001 else f"p = {against.p_value:.3f}"
    difference = f"{against.difference * factor:+.1f}{'*' if sure else ''}, {p}".replace("-", "−")
    return join(shown, interval, tag("span", difference, class_="sure" if sure else "unsure"))


def _speed(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
