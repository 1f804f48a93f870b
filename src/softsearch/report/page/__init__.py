"""An evaluation report as one HTML file that a browser shows without a network."""

from pathlib import Path

from softsearch.evaluation.schema import Report
from softsearch.report.page.document import figure, write_document
from softsearch.report.page.figures import figures
from softsearch.report.page.markup import Markup, join, tag
from softsearch.report.page.tables import score_table, signature_list, system_table, table
from softsearch.report.page.translations import translation_data, translations


def write_page(report: Report, folder: Path) -> Path:
    """Writes ``report.html`` and returns its path.

    Args:
        report: with at least one system.
        folder: of the report, where its pictures are; they become part of the page.

    Raises:
        InputError: a picture that the report names is not in the folder.
    """
    sections = {
        "Scores": join(score_table(report), signature_list(report)),
        "Systems": system_table(report),
        "Figures": figures(report),
        "Alignments": _alignments(report, folder),
        "Translations": translations(report),
    }
    kept = {title: content for title, content in sections.items() if content}
    body = join(
        _header(report, list(kept)),
        tag("main", _warnings(report), *(_section(title, content) for title, content in kept.items())),
    )
    title = f"{report.test_set}: {', '.join(system.name for system in report.systems)}"
    return write_document(folder / "report.html", title, body, data=translation_data(report))


def _header(report: Report, titles: list[str]) -> Markup:
    facts = {
        "languages": f"{report.src_lang} to {report.tgt_lang}",
        "sentences": f"{len(report.sources):,}",
        "created": report.created,
        "machine": report.machine,
        "version": f"softsearch {report.softsearch_version}",
    }
    entries = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items()]
    links = [tag("li", tag("a", title, href=f"#{title.lower()}")) for title in titles]
    return tag(
        "header",
        tag("a", "Skip to the translations", href="#translations", class_="skip"),
        tag("p", "Translation quality", class_="kind"),
        tag("h1", report.test_set),
        tag("dl", *entries, class_="facts"),
        tag("nav", tag("ul", *links), aria_label="sections"),
    )


def _warnings(report: Report) -> Markup:
    """What makes the scores doubtful; nothing where there is nothing."""
    overlap = ""
    if any(report.overlap.values()):
        rows = [[kind, f"{count:,}", f"{count / len(report.sources):.1%}"] for kind, count in report.overlap.items()]
        overlap = table("Test sentences that are in the training data.", ["kind", "sentences", "share"], rows)
    if not report.warnings and not overlap:
        return Markup()
    messages = tag("ul", *(tag("li", warning) for warning in report.warnings)) if report.warnings else ""
    return tag("aside", tag("h2", "Warnings"), messages, overlap, class_="warnings", id="warnings")


def _section(title: str, content: Markup) -> Markup:
    name = title.lower()
    return tag("section", tag("h2", title, id=f"{name}-title"), content, id=name, aria_labelledby=f"{name}-title")


def _alignments(report: Report, folder: Path) -> Markup:
    parts = []
    for system in report.systems:
        pictures = [figure(folder, picture.file, picture.caption) for picture in system.heatmaps]
        parts += [tag("h3", system.name), *pictures] if pictures else []
    return join(*parts)
