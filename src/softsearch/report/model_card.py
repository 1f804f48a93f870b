"""Model card: the README of a bundle."""

from collections.abc import Mapping
from typing import Any

from softsearch.report.markdown import render_markdown


def model_card(
    name: str, facts: Mapping[str, Any], sizes: Mapping[str, int], single: Mapping[str, Any] | None = None
) -> str:
    """Markdown that says what the model is, how it was trained, how good it is and how to use it.

    ``facts`` are the manifest's training section; its ``evaluation`` has scores with intervals, and without it the
    final metrics of training, ``results``, are shown. ``sizes`` are the files' bytes;
    ``single`` describes the inputs and outputs of a single graph.
    """
    results = facts.get("results", {})
    scores = {key: value for key, value in results.items() if not key.startswith(("train/", "model/"))}
    values = {
        "name": name,
        "facts": facts,
        "results": results,
        "scores": scores,
        "evaluation": facts.get("evaluation"),
        "sizes": sizes,
        "single": single,
    }
    return render_markdown("softsearch.report", "model_card.md.jinja", values)
