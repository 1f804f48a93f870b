"""A report on two checkpoints, a bundle and their ensemble, by the command that users type."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from softsearch.app.config.composition import composed
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.errors import SoftsearchError
from softsearch.evaluation.measure import Evaluator
from softsearch.runtime.translator import Translator
from tests.support.commands import run

SPLIT = "test"


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Alignments made by people who link first words only, in NAACL's format."""
    path = tmp_path_factory.mktemp("gold") / "gold.naacl"
    path.write_text("".join(f"{line} 1 1 S\n" for line in range(1, 21)))
    return path


@pytest.fixture(scope="module")
def reported(trained: Path, bundle: Path, gold: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report with every optional part."""
    folder = tmp_path_factory.mktemp("report")
    checkpoints = ",".join(str(trained / "checkpoints" / f"{name}.ckpt") for name in ("best", "step-4"))
    done = run(
        "evaluate.py",
        f"ckpt=[{checkpoints}]",
        f"bundle={bundle}",
        "ensemble=probs",
        "weights=[2,1,1]",
        "curve=[greedy,2,sample,mbr]",
        "alignments=true",
        "heatmaps=1",
        "traces=[2]",
        f"gold={gold}",
        "search.max_length_factor=1",
        f"cache_dir={trained.parent / 'cache'}",
        f"hydra.run.dir={folder}",
    )
    assert done.returncode == 0, done.stderr
    (folder / "stdout").write_text(done.stdout, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def report(reported: Path) -> dict[str, Any]:
    """The report as read from report.json."""
    read: dict[str, Any] = json.loads((reported / "report.json").read_text(encoding="utf-8"))
    return read


def test_the_folder_holds_all_files_and_nothing_unfinished(
    trained: Path, reported: Path, report: dict[str, Any]
) -> None:
    files = {path.name for path in reported.iterdir()}
    names = [re.sub(r"[^\w.+-]+", "-", system["name"]) for system in report["systems"]]
    assert names == ["ensemble", f"{trained.name}-best", f"{trained.name}-step-4", "small"]
    assert {f"test.{name}.hypotheses.txt" for name in names} <= files
    assert {"report.json", "report.html", "metrics.json", "alignments"} <= files
    assert not [name for name in files if "unfinished" in name]
    for name, system in zip(names, report["systems"], strict=True):
        lines = (reported / f"test.{name}.hypotheses.txt").read_text(encoding="utf-8").split("\n")[:-1]
        assert lines == [" ".join(line.splitlines()) for line in system["hypotheses"]]
        assert len((reported / "alignments" / f"{name}.txt").read_text().split("\n")) == 21
        (heatmap,) = system["heatmaps"]
        (trace,) = system["traces"]
        assert (trace["line"], trace["version"]) == (2, 1)
        assert [sum(row) for row in heatmap["weights"]] == pytest.approx([1] * len(heatmap["tgt"]), abs=1e-2)


def test_the_bundle_says_what_its_checkpoint_says(report: dict[str, Any]) -> None:
    _, run_of_it, _, small = report["systems"]
    assert small["hypotheses"] == run_of_it["hypotheses"]
    assert small["scores"] == run_of_it["scores"]
    assert small["nll"] == pytest.approx(run_of_it["nll"], rel=1e-4)
    assert small["aer"] == pytest.approx(run_of_it["aer"], abs=1e-3)
    assert [system["backend"] for system in report["systems"]] == ["mixed", "torch", "torch", "onnx"]


def test_the_ensemble_comes_first_and_is_compared_with_its_members(report: dict[str, Any], reported: Path) -> None:
    ensemble = report["systems"][0]
    assert ensemble["name"] == "ensemble"
    assert {(c["baseline"], c["metric"]) for c in report["comparisons"]} == {
        ("ensemble", metric) for metric in ("bleu", "chrf", "ter", "bleu_lc", "exact_match")
    }
    assert len(report["comparisons"]) == 15
    metrics = json.loads((reported / "metrics.json").read_text())
    assert metrics["test/chrf"] == pytest.approx(ensemble["scores"]["chrf"]["value"])
    assert metrics["test/loss"] == pytest.approx(ensemble["nll"])
    assert metrics["test/aer"] == ensemble["aer"]


def test_every_part_is_filled(report: dict[str, Any]) -> None:
    assert len(report["sources"]) == len(report["references"]) == 20
    assert {"source and reference", "source", "reference"} == report["overlap"].keys()
    assert any("a bundle does not contain it" in warning for warning in report["warnings"])
    for system in report["systems"]:
        assert {"bleu", "chrf", "ter", "bleu_lc", "exact_match"} <= system["scores"].keys()
        for score in system["scores"].values():
            assert score["low"] - 1e-3 <= score["value"] <= score["high"] + 1e-3
        assert [point["name"] for point in system["search_curve"]] == ["greedy", "beam 2", "sample", "mbr"]
        assert all(0 <= point["search_errors"] <= 1 for point in system["search_curve"])
        assert sum(r["sentences"] for r in system["by_length"]) == 20
        assert 0 <= system["aer"] <= 1
        assert system["parameters"] > 0 < system["size_bytes"]


def test_the_tables_are_shown(reported: Path) -> None:
    shown = (reported / "stdout").read_text(encoding="utf-8")
    for part in ("95 % intervals", "paired bootstrap", "searches with ensemble", "bs:1000", "report.html", "warning:"):
        assert part in shown


@pytest.mark.day
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "no system is named"),
        (["bundle={bundle}"], "set data=... or test="),
        (["ckpt={ckpt}", "weights=[1]"], "ensemble is null"),
        (["ckpt={ckpt}", "ensemble=mean"], "ensemble"),
        (["ckpt={ckpt}", "curve=[wide]"], "curve has 'wide'"),
        (["ckpt={ckpt}", "curve=5"], "expected a list"),
        (["ckpt={ckpt}", "curve=[2,3]", "search.groups=2", "search.beam=4"], "search.groups is 2"),
        (["ckpt={ckpt}", "heatmaps=[21]"], "line numbers from 1 to 20"),
        (["ckpt={ckpt}", "traces=[21]"], "traces is [21]"),
        (["ckpt={ckpt}", "traces=1", "search=exact"], "traces is 1, which needs search=beam or search=greedy"),
        (["ckpt={ckpt}", "gold={bad}"], "gold.txt:2 has 'x'"),
        (["ckpt={ckpt}", "gold={bad}", "test=[a.en,a.fr,a.de]"], "gold aligns one source, but test names several"),
        (["ckpt={ckpt}", "test=[{bad},{bad},{bad}]"], "2 inputs for 1 models"),
        (["ckpt={ckpt}", "test=[a.en]"], "test has 1 files, expected one of sources and one of references"),
        (["ckpt={ckpt}", "against={bad}"], "name the folder of a report"),
        (["ckpt={ckpt}", "search.glossary={bad}"], "gold.txt:1 has 1 columns"),
        (["ckpt={ckpt}", "search.glossary={bad}", "search=exact"], "which needs search=beam or search=greedy"),
        (["ckpt={ckpt}", "search.glossary={bad}", "curve=[2]"], "the searches of curve do not support one"),
        (["ckpt={ckpt}", "search.glossary_bonus=1"], "search.glossary is null; set search.glossary=FILE"),
        (["ckpt={ckpt}", "search.glossary_bonus=-1"], "search.glossary_bonus is -1, expected a number of at least 0"),
        (["bundle={bundle}", "shortlist.frequent=5", "data=spellout"], "has no shortlist; export it with shortlist=10"),
    ],
)
def test_a_mistake_is_answered_before_anything_is_translated(
    trained: Path, bundle: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    bad = tmp_path / "gold.txt"
    bad.write_text("0-0\nx\n" + "\n" * 18)
    places = {"ckpt": trained / "checkpoints" / "best.ckpt", "bundle": bundle, "bad": bad}
    with pytest.raises(SoftsearchError) as error:
        evaluated(tmp_path / "out", trained.parent / "cache", *(option.format(**places) for option in options))
    assert message in str(error.value)
    assert not list((tmp_path / "out").glob("*"))


@pytest.mark.day
def test_translations_have_the_terms_of_a_glossary_as_those_of_the_runtime(
    trained: Path, bundle: Path, tmp_path: Path
) -> None:
    sources = ["one", "twenty-one", "the second of three"]
    glossary, text = tmp_path / "terms.tsv", tmp_path / "in.en"
    glossary.write_text("one\tzwei\nthree\tneun\n", encoding="utf-8")
    text.write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
    options = f"ckpt={trained / 'checkpoints' / 'best.ckpt'}", f"test=[{text},{text}]", f"search.glossary={glossary}"
    evaluated(tmp_path / "out", trained.parent / "cache", *options)
    found = (tmp_path / "out" / "test.hypotheses.txt").read_text(encoding="utf-8").splitlines()
    assert found == [one.text for one in Translator(bundle, glossary=glossary).translate(sources)]
    assert "zwei" in found[0]
    assert "zwei" in found[1]
    assert "neun" in found[2]
    (system,) = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["systems"]
    assert system["search"].endswith("glossary terms.tsv")


@pytest.mark.day
def test_your_own_files_and_a_bundle_alone(trained: Path, bundle: Path, tmp_path: Path) -> None:
    """Overlap with the training data is counted where that data is known."""
    cache = trained.parent / "cache"
    folder = next(path.parent for path in cache.glob("spellout-*/train.en") if path.read_text().count("\n") == 300)
    for side in ("en", "de"):
        lines = (folder / f"train.{side}").read_text(encoding="utf-8").splitlines()[:6]
        (tmp_path / f"own.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    common = (f"test=[{tmp_path / 'own.en'},{tmp_path / 'own.de'}]", "search=greedy", "search.max_length_factor=1")
    first = evaluated(tmp_path / "a", cache, f"ckpt={trained / 'checkpoints' / 'best.ckpt'}", *common)
    assert first["overlap"]["source and reference"] == 6
    assert any("are in the training data, 6 with the same translation" in warning for warning in first["warnings"])
    second = evaluated(tmp_path / "b", cache, f"bundle={bundle}", *common, "sentences=4")
    assert first["systems"][0]["hypotheses"][:4] == second["systems"][0]["hypotheses"]
    assert second["overlap"] == {}
    assert {"test.hypotheses.txt", "metrics.json", "report.json", "report.html"} == {
        path.name for path in (tmp_path / "b").iterdir()
    }


@pytest.mark.day
def test_each_model_of_an_ensemble_reads_its_own_file(trained: Path, bundle: Path, tmp_path: Path) -> None:
    cache, best = trained.parent / "cache", f"ckpt={trained / 'checkpoints' / 'best.ckpt'}"
    sources = ["one", "two three", "ten"]
    for lang, lines in (("en", sources), ("xx", sources[::-1]), ("de", ["eins", "zwei drei", "zehn"])):
        (tmp_path / f"own.{lang}").write_text("".join(f"{line}\n" for line in lines))

    def hypotheses(name: str, langs: str, *options: str) -> dict[str, list[str]]:
        test = f"test=[{','.join(str(tmp_path / f'own.{lang}') for lang in langs.split())}]"
        limit = ("search=greedy", "search.max_length_factor=0", "search.max_length_offset=6")
        systems = evaluated(tmp_path / name, cache, test, *limit, *options)["systems"]
        return {system["name"]: system["hypotheses"] for system in systems}

    both = hypotheses("both", "en xx de", best, f"bundle={bundle}", "ensemble=log_probs")
    alone = hypotheses("first", "en de", best) | hypotheses("second", "xx de", f"bundle={bundle}")
    assert len(both) == 3
    assert alone.items() <= both.items()


def evaluated(folder: Path, cache: Path, *options: str) -> dict[str, Any]:
    """The report of src/evaluate.py, made in this process."""
    config = composed("evaluate", *options, f"run_dir={folder}", f"cache_dir={cache}")
    evaluate(config)
    read: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return read


@pytest.mark.day
def test_an_earlier_report_s_systems_are_compared_with(
    trained: Path, reported: Path, report: dict[str, Any], tmp_path: Path
) -> None:
    best = f"ckpt={trained / 'checkpoints' / 'best.ckpt'}"
    new = evaluated(tmp_path / "new", trained.parent / "cache", best, "search=greedy", f"against={reported}")
    own, *earlier = new["systems"]
    assert own["search"] == "greedy"
    assert earlier == [{**system, "heatmaps": [], "traces": []} for system in report["systems"]]
    bleu = {c["system"]: c for c in new["comparisons"] if c["metric"] == "bleu"}
    assert list(bleu) == [system["name"] for system in earlier]
    for system in earlier:
        difference = system["scores"]["bleu"]["value"] - own["scores"]["bleu"]["value"]
        assert bleu[system["name"]]["baseline"] == own["name"]
        assert bleu[system["name"]]["difference"] == pytest.approx(difference)


@pytest.mark.day
@pytest.mark.parametrize(
    ("limit", "verdict"), [(100, "within the limit"), (0, r"(within the limit|above the limit|inconclusive)")]
)
def test_what_an_adapted_model_lost_is_tested(
    limit: float, verdict: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.en").write_text("one\ntwo\nthe third of may\n" * 5)
    (tmp_path / "old.de").write_text("eins\nzwei\nder dritte mai\n" * 5)
    both = f"ckpt=[{trained}/checkpoints/last.ckpt,{trained}/checkpoints/step-4.ckpt]"
    guard = f"guard={{old: [{tmp_path}/old.en,{tmp_path}/old.de], max_loss: {limit}}}"
    report = evaluated(tmp_path / "out", trained.parent / "cache", both, guard, "metric=[chrf]", "overlap=false")
    said = capsys.readouterr().out
    found = re.search(r"guard: chrf on old\.en, old\.de was ([\d.]+) and is ([\d.]+), a loss of ([-\d.]+)", said)
    assert found
    was, now, loss = map(float, found.groups())
    assert loss == pytest.approx(was - now, abs=0.011)
    assert re.search(f"at most {limit:.2f}: {verdict}", said.replace("\n", " "))
    assert any(warning.startswith("guard:") for warning in report["warnings"]) == ("within" not in said)


@pytest.mark.day
def test_a_guard_needs_the_model_before(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Evaluator, "measure")  # it is refused before hours of translating
    with pytest.raises(SoftsearchError, match=r"there are 1 systems; set ckpt='\[ADAPTED,BEFORE\]'"):
        evaluated(tmp_path, trained.parent / "cache", f"ckpt={trained}", "guard={old: [a.en,a.de]}")
