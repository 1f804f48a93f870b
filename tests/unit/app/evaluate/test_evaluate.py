"""What the evaluation command says, on small bundles and checkpoints and in this process."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from softsearch.app.config.build import build_model, rebuild_model, rebuild_source
from softsearch.app.config.composition import composed
from softsearch.app.config.options import Score
from softsearch.app.config.validation import plain, read_options
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.app.export import _facts
from softsearch.app.score import score
from softsearch.errors import SoftsearchError
from softsearch.search.ensemble import AVERAGES, Average
from softsearch.testing.models import model_config
from softsearch.text.tokenizer import train_tokenizer
from softsearch.training.checkpoints.checkpoint_contents import ORIGIN
from softsearch.training.checkpoints.folder import read_weights
from tests.support.bundles import SRC_LINES, TGT_LINES, make_bundle
from tests.unit.app.opening import SRC, TGT, Home, make_home


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two bundles, ``one`` and ``two``, and a text, ``x.en`` and ``x.de``."""
    folder = tmp_path_factory.mktemp("evaluated")
    for seed, name in enumerate(("one", "two")):
        make_bundle(folder / name, seed=seed)
    for file, lines in (("x.en", SRC_LINES), ("x.de", TGT_LINES)):
        (folder / file).write_text("".join(f"{line}\n" for line in lines[:4]), encoding="utf-8")
    return folder


@pytest.mark.parametrize("average", AVERAGES)
def test_a_report_says_by_which_mean_its_ensemble_wrote_and_why_a_figure_is_missing(
    average: Average, folder: Path, tmp_path: Path
) -> None:
    options = (
        f"bundle=[{folder / 'one'},{folder / 'two'}]",
        f"test=[{folder / 'x.en'},{folder / 'x.de'}]",
        f"ensemble={average}",
        "search=greedy",
        "search.max_length_factor=1",
        "overlap=false",
    )
    evaluate(composed("evaluate", *options, f"run_dir={tmp_path}"))
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [system["search"] for system in report["systems"]] == [f"greedy, ensemble by {average}", "greedy", "greedy"]
    missing = ["ensemble"] * (average == "unnormalised_log_probs")
    assert [system["name"] for system in report["systems"] if system["nll"] is None] == missing
    reasons = [warning for warning in report["warnings"] if "has no -log p of a reference token: " in warning]
    assert [warning.split()[0] for warning in reasons] == missing


@pytest.mark.parametrize(("method", "first"), [
    ({}, "layer 1, mean of its heads (usual)"),
    ({"_target_": "softsearch.training.GuidedAlignment"}, "layer 0, head 1 (guided)"),
])  # fmt: skip
def test_heatmaps_of_a_transformer_have_its_heads_behind_its_own_alignments(
    method: dict[str, str], first: str, tmp_path: Path
) -> None:
    home = make_home(tmp_path)
    chosen = ("model.decoder.alignment_layer=0", "model.decoder.alignment_head=1") if method else ()
    config = model_config("transformer_tiny", *chosen)
    tokenizer = train_tokenizer([*SRC, *TGT], kind="word", vocab_size=16)
    weights = build_model(config, (tokenizer, tokenizer)).state_dict()

    def change(checkpoint: dict[str, Any]) -> None:
        checkpoint[ORIGIN]["config"] |= {"model": plain(config), "method": method}
        checkpoint["state_dict"] = {f"model.{name}": weight for name, weight in weights.items()}

    home.save(change)
    options = ("search=greedy", "search.max_length_factor=1", "overlap=false", "alignments=true", "heatmaps=[1]")
    evaluate(composed("evaluate", f"ckpt={home.other}", *options, f"run_dir={tmp_path / 'report'}"))
    ((heatmap,),) = (s["heatmaps"] for s in json.loads((tmp_path / "report" / "report.json").read_text())["systems"])
    names = [*(f"layer {layer}, head {head}" for layer in range(2) for head in range(2))]
    assert list(heatmap["heads"]) == [first, "mean of all layers and heads", *names]
    usual = [[round(100 * weight) for weight in row] for row in heatmap["weights"]]
    shown = [[int(percent) for percent in row.split()] for row in heatmap["heads"][first]]
    assert shown == [pytest.approx(row, abs=1) for row in usual]
    if method:
        assert heatmap["heads"][first] == heatmap["heads"]["layer 0, head 1"]
    saved = read_weights(str(home.other), None)
    assert _facts(saved, rebuild_source(saved), rebuild_model(saved))["attention"] == first  # of a bundle


@pytest.mark.parametrize(("adapted", "before", "verdict"), [("one", "two", "within"), ("two", "one", "above")])
def test_a_guard_above_its_limit_fails_and_its_line_is_printed_once(
    adapted: str, before: str, verdict: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [folder / name for name in ("all.en", "all.de")]
    for file, text in zip(lines, (SRC_LINES, TGT_LINES), strict=True):
        file.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    pair = f"[{lines[0]},{lines[1]}]"
    bundles = f"bundle=[{folder / adapted},{folder / before}]"
    short = ("overlap=false", "search=greedy", "search.max_length_factor=1", "metric=[chrf]")
    config = composed("evaluate", bundles, f"test={pair}", f"guard={{old: {pair}, max_loss: 0}}", *short)
    config.run_dir = str(tmp_path)
    failed = ""
    try:
        evaluate(config)
    except SoftsearchError as error:
        failed = f"{error} ({error.exit_code})"
    assert failed == ("guard.max_loss=0 is exceeded (1)" if verdict == "above" else "")
    assert capsys.readouterr().out.count(f"at most 0.00: {verdict} the limit") == 1
    warnings = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["warnings"]
    assert sum(warning.startswith("guard:") for warning in warnings) == (verdict == "above")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_home(tmp_path_factory.mktemp("home"))


def evaluated(home: Home, *options: str) -> dict[str, Any]:
    places = (f"run_dir={home.folder / 'out'}", f"cache_dir={home.folder / 'cache'}", "search.max_length_factor=1")
    evaluate(composed("evaluate", f"ckpt={home.other}", "search=greedy", *places, *options))
    report: dict[str, Any] = json.loads((home.folder / "out" / "report.json").read_text(encoding="utf-8"))
    return report


OURS = "softsearch.evaluation.metrics"


def test_a_run_s_own_metrics_are_measured_where_none_are_typed(home: Home) -> None:
    own = {
        "words": {"_target_": f"{OURS}.ChrF", "word_order": 1},
        "exact_match": {"_target_": f"{OURS}.ExactMatch"},
        "ter": None,
        "spbleu": {"_target_": f"{OURS}.BLEU", "tokenize": "flores200"},
        "mine": {"_target_": "somebodys.Metric"},
    }
    home.save(lambda checkpoint: checkpoint["softsearch"]["config"].update(metric=own))
    report = evaluated(home)
    assert [*report["metrics"]][:6] == ["words", "exact_match", "bleu", "chrf", "ter", "bleu_lc"]
    assert "nw:1" in report["systems"][0]["scores"]["words"]["signature"]
    warned = [warning for warning in report["warnings"] if "was trained with metric=" in warning]
    assert [("metric=spbleu" in w, "metric=mine" in w) for w in warned] == [(True, False), (False, True)]
    assert "trust='[somebodys.*]'" in warned[1]
    assert next(iter(evaluated(home, "metric=[chrf]")["metrics"])) == "chrf"


def test_metrics_of_all_checkpoints_are_in_one_table(home: Home) -> None:
    metrics: list[dict[str, Any]] = [
        {"words": {"_target_": f"{OURS}.ChrF", "word_order": 1}},
        {"words": {"_target_": f"{OURS}.ChrF", "word_order": 2}, "exact": {"_target_": f"{OURS}.ExactMatch"}},
    ]
    for own in metrics:
        home.save(lambda checkpoint, own=own: checkpoint["softsearch"]["config"].update(metric=own))
        home.other.rename(home.other.with_name(f"{len(own)}.ckpt"))
    paths = [str(home.other.with_name(f"{n}.ckpt")) for n in (1, 2)]
    report = evaluated(home, f"ckpt=[{','.join(paths)}]")
    assert [*report["metrics"]][:3] == ["words", "exact", "bleu"]
    assert all({"words", "exact"} <= system["scores"].keys() for system in report["systems"])
    assert "nw:1" in report["systems"][1]["scores"]["words"]["signature"]
    (warning,) = [warning for warning in report["warnings"] if "another metric=words" in warning]
    assert warning.startswith(report["systems"][1]["name"])


def test_translations_of_any_program_are_compared_with_ours_and_alone(home: Home) -> None:
    home.save(lambda _: None)
    for name, lines in (("best.de", TGT), ("worse.de", [*TGT[:-1], "zzz"])):
        (home.folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    hyp = f"hyp=[{home.folder / 'best.de'},{home.folder / 'worse.de'}]"
    report = evaluated(home, hyp)
    ours, best, worse = report["systems"]
    assert [best["name"], worse["name"], best["origin"]] == ["best", "worse", str(home.folder / "best.de")]
    assert (best["hypotheses"], best["scores"]["exact_match"]["value"]) == (list(TGT), 1)
    assert [best[key] for key in ("parameters", "size_bytes", "sentences_per_second", "nll")] == [None] * 4
    compared = {(c["system"], c["baseline"]) for c in report["comparisons"]}
    assert compared == {("best", ours["name"]), ("worse", ours["name"])}
    assert evaluated(home, hyp, "sentences=2")["systems"][1]["hypotheses"] == list(TGT[:2])

    text, places = f"test=[{home.folder / 'test.en'},{home.folder / 'test.de'}]", f"run_dir={home.folder / 'alone'}"
    evaluate(composed("evaluate", hyp, text, places, f"cache_dir={home.folder / 'cache'}"))
    alone = json.loads((home.folder / "alone" / "report.json").read_text(encoding="utf-8"))
    assert [system["scores"] for system in alone["systems"]] == [best["scores"], worse["scores"]]
    assert (alone["src_lang"], alone["tgt_lang"]) == ("en", "de")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "hyp does not say what was translated; set data=... or test='[x.en,x.de]'"),
        (("test=[{}/test.en,{}/test.de]",), "two.de has 2 lines, but the test set test.en, test.de has "),
        (("test=[{}/test.en,{}/test.de]", "traces=1"), "traces is 1, which needs a model, but only hyp is named; add"),
    ],
)
def test_translations_that_fit_no_text_are_refused(options: tuple[str, ...], problem: str, home: Home) -> None:
    (home.folder / "two.de").write_text("a\nb\n", encoding="utf-8")
    given = [option.replace("{}", str(home.folder)) for option in options]
    config = composed("evaluate", f"hyp={home.folder / 'two.de'}", *given, f"run_dir={home.folder / 'out'}")
    with pytest.raises(SoftsearchError, match=re.escape(problem)):
        evaluate(config)


def test_a_text_of_other_languages_or_of_another_form_is_told_by_every_command(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.save(lambda _: None)
    pair = [home.folder / "swapped.de", home.folder / "swapped.en"]
    pair[0].write_text("d@@ e f\n" * 12)
    pair[1].write_text("D  E F\n" * 12)
    languages = "the test set swapped.de, swapped.en is de-en, but the model other is en-de; are the files swapped?"
    told = [
        languages,
        "the sources of swapped.de, swapped.en: words are split with '@@ '",
        "swapped.de, swapped.en: of 12 references 12 have white space",
    ]
    warnings = evaluated(home, f"test=[{pair[0]},{pair[1]}]", "overlap=false")["warnings"]
    places = (f"run_dir={home.folder / 'out'}", f"cache_dir={home.folder / 'cache'}")
    config = composed("score", f"ckpt={home.other}", f"src={pair[0]}", f"tgt={pair[1]}", *places)
    capsys.readouterr()
    score(read_options(config, Score))
    said = capsys.readouterr().out
    for problem in told:
        assert sum(warning.startswith(problem) for warning in warnings) == 1
        assert f"warning: {problem}" in said
