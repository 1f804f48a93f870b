"""A small report with everything that a page can show, and a reader of pages."""

import json
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from softsearch.evaluation.schema import Comparison, LengthRange, MetricFacts, Report, Score, SearchPoint, SystemReport
from softsearch.report.heatmap import heatmap
from softsearch.search.beam import BeamSearch
from softsearch.search.trace import trace_search
from tests.support.tables import NAMES, SmallTree

EVIL = "</script><script>document.title = 'owned'</script><img src=x onerror=alert(1)> & \"quoted\" \u2028 \x00"
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0"
_VOID = {"meta", "link", "img", "input", "br"}


def system(name: str, hypotheses: list[str], chrf: list[float], **changed: Any) -> SystemReport:
    """A system with the given translations."""
    values: dict[str, Any] = {
        "name": name,
        "origin": f"runs/{name}/best.ckpt",
        "backend": "torch",
        "architecture": "rnnsearch",
        "search": "beam 5, length penalty 1.0",
        "parameters": 3_412_345,
        "size_bytes": 13_900_000,
        "sentences_per_second": 72.4,
        "tokens_per_second": 1012.0,
        "scores": {"bleu": Score(38.2, 36.4, 39.8, SIGNATURE), "exact_match": Score(0.065, 0.05, 0.08)},
        "nll": 1.68,
        "length_ratio": 1.012,
        "by_length": [
            LengthRange("01-05", 20, Score(24.0, 18.0, 36.0), 1.3),
            LengthRange("06-10", 285, Score(42.0, 40.0, 45.0), 1.01),
            LengthRange("51+", 9, Score(90.0, 80.0, 100.0), 0.7),
        ],
        "hypotheses": hypotheses,
        "sentence_scores": chrf,
    }
    return SystemReport(**values | changed)


def whole_report(sentences: int = 45) -> Report:
    """Two systems; the chrF of sentence ``i`` is ``10 + i``, but the last is the worst."""
    sources = [f"the cat number {i}" for i in range(sentences - 1)] + [EVIL]
    references = [f"die katze nummer {i}" for i in range(sentences - 1)] + ["ein ganz anderer satz"]
    first = [f"die katze zahl {i}" for i in range(sentences - 1)] + [EVIL]
    second = [f"die katze nummer {i}" for i in range(sentences - 2)] + ["", EVIL]
    chrf = [10.0 + i for i in range(sentences - 1)] + [1.0]
    curve = [
        SearchPoint("greedy", 36.0, -8.1, -0.6, 4.1, 0.0, 0.31, 0.98),
        SearchPoint("exact", 30.0, -7.1, -0.9, 800.0, 0.2, None),
    ]
    weights = np.array([[0.9, 0.1, 0], [0.004, 0.63, 0.366]])
    heads = {"layer 1, head 0 (guided)": weights, "layer 0, head <1>": weights[:, ::-1]}
    picture = np.full((48, 48, 3), 200, dtype=np.uint8)
    heatmaps = [
        heatmap(["the", "猫", "</s>"], ["die", "<katze>"], weights, "attention of <rnn>", heads=heads),
        heatmap(["<feature>"] * 4, ["a", "square"], np.full((2, 4), 0.25), "a picture", picture),
    ]
    names = (*NAMES[:-1], "<img src=x onerror=alert(1)>")
    trace = {"line": 3, "source": EVIL} | trace_search(SmallTree(), BeamSearch(beam=2, n_best=2), [4], names)
    return Report(
        test_set="test <2016>",
        src_lang="en",
        tgt_lang="de",
        created="2026-11-21T16:30:00Z",
        softsearch_version="0.1.0",
        machine="2 cores & no GPU",
        sources=sources,
        references=references,
        systems=[
            system("rnn", first, chrf, search_curve=curve, heatmaps=heatmaps, aer=0.31, traces=[trace]),
            system("tiny", second, [*chrf[:-2], 0.0, 90.0], nll=None),
        ],
        metrics={
            "bleu": MetricFacts("BLEU", limits=[0.0, 100.0]),
            "exact_match": MetricFacts("exact match", percent=True),
            "chrf": MetricFacts("chrF"),
        },
        sentence_metric="chrf",
        comparisons=[Comparison("tiny", "rnn", "bleu", -1.5, 0.0004)],
        overlap={"same source": 9},
        warnings=["9 of 45 sentences are in the <training> data"],
    )


class Element:
    """What a page says in one element."""

    def __init__(self, name: str, attributes: dict[str, str | None], parent: "Element | None" = None) -> None:
        self.name, self.attributes, self.parent = name, attributes, parent
        self.content: list[Element | str] = []

    @property
    def text(self) -> str:
        """All text in it."""
        return "".join(part if isinstance(part, str) else part.text for part in self.content)

    def all(self, name: str, **attributes: str) -> list["Element"]:
        """The elements in it of that name and with those attributes."""
        found = []
        for part in self.content:
            if isinstance(part, Element):
                fits = all(part.attributes.get(key.rstrip("_")) == value for key, value in attributes.items())
                found += [part] * (part.name == name and fits)
                found += part.all(name, **attributes)
        return found


class Page(HTMLParser):
    """Reads a page; each element must be closed where it belongs."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.root = self.current = Element("", {})
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self.current is self.root, f"{self.current.name} is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = Element(tag, dict(attrs), self.current)
        self.current.content.append(found)
        if tag not in _VOID:
            self.current = found

    def handle_endtag(self, tag: str) -> None:
        assert self.current.name == tag, f"</{tag}> ends {self.current.name}"
        assert self.current.parent is not None
        self.current = self.current.parent

    def handle_data(self, data: str) -> None:
        self.current.content.append(data)


def trained_run(folder: Path, **changed: Any) -> Path:
    """Writes what a training leaves for comparisons, and returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    figures: dict[str, Any] = {
        "test/bleu": 38.2,
        "test/chrf": 63.7,
        "train/tokens_per_second": 6344.0,
        "model/parameters": 3_400_000,
        "test/loss": 1.5,
        "signatures": {"test/bleu": "nrefs:1|bs:1000|seed:12345|tok:none"},
        "model": "rnnsearch",
        "test_set": "t.en, t.de",
        "metrics": {"bleu": asdict(MetricFacts("BLEU")), "chrf": asdict(MetricFacts("chrF"))},
    }
    (folder / "metrics.json").write_text(json.dumps(figures | changed))
    return folder
