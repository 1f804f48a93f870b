"""The browsable list of translations: its controls, and what the script fills it with."""

from typing import Any

from softsearch.evaluation.schema import Report
from softsearch.report.page.markup import Markup, join, tag


def translations(report: Report) -> Markup:
    """The list's place in the page; ``page.js`` shows the sentences and answers the controls."""
    buttons = [("first", "First"), ("previous", "Previous"), ("next", "Next"), ("last", "Last")]
    pager = tag(
        "nav",
        *(tag("button", label, type="button", data_go=go) for go, label in buttons[:2]),
        tag("span", class_="where"),
        *(tag("button", label, type="button", data_go=go) for go, label in buttons[2:]),
        class_="pager",
        aria_label="pages of translations",
    )
    hint = tag(
        "p",
        tag("mark", "Marked"),
        " words of a translation are not in the text that it is compared with; ",
        tag("span", "underlined", class_="missed"),
        " words of that text are in no translation. Beside each system is the chrF of its sentence.",
        class_="hint",
    )
    browser = tag(
        "div",
        _controls(report),
        tag("output", id="found", for_="filter"),
        hint,
        pager,
        tag("ol", id="sentences", class_="sentences"),
        pager,
        id="browser",
        hidden=True,
    )
    without = tag("noscript", tag("p", "The list of translations needs JavaScript; report.json has the same texts."))
    return join(browser, without)


def translation_data(report: Report) -> dict[str, Any]:
    """What ``page.js`` reads."""
    return {
        "languages": [report.src_lang, report.tgt_lang],
        "sources": report.sources,
        "references": report.references,
        "systems": [
            {"name": s.name, "hypotheses": s.hypotheses, "chrf": [round(value, 1) for value in s.sentence_chrf]}
            for s in report.systems
        ],
    }


def _controls(report: Report) -> Markup:
    first, *others = (system.name for system in report.systems)
    orders = {"chrf-0": f"chrF of {first}, worst first"}
    for place, other in enumerate(others, 1):
        orders[f"chrf-{place}"] = f"chrF of {other}, worst first"
    for place, other in enumerate(others, 1):
        orders[f"worse-{place}"] = f"{other} worse than {first}"
        orders[f"better-{place}"] = f"{other} better than {first}"
    orders |= {"long": "longest source first", "short": "shortest source first", "file": "order in the file"}
    bases = {"reference": "the reference"} | {str(place): system.name for place, system in enumerate(report.systems)}
    text = tag("input", type="search", id="filter", autocomplete="off")
    parts = [_choice("sort", "Sort by", orders), tag("label", "Only sentences with", text)]
    if others:
        box = tag("input", type="checkbox", id="differing")
        differing = tag("label", box, " translations that differ", class_="box")
        parts = [parts[0], _choice("compare", "Compare with", bases), parts[1], differing]
    return tag("form", *parts, class_="controls", role="search", aria_label="choose translations")


def _choice(name: str, label: str, options: dict[str, str]) -> Markup:
    entries = [tag("option", text, value=key) for key, text in options.items()]
    return tag("label", label, tag("select", *entries, id=name))
