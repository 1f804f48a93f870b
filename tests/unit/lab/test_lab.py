"""The lab's commands as functions: the same results, as objects, and exceptions instead of exits."""

import os
import re
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from softsearch import Bundle, CheckpointError, ConfigError, CorpusError, Translator, lab
from softsearch.models import Seq2Seq
from tests.support.commands import SMALL


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> lab.Run:
    folder = tmp_path_factory.mktemp("lab") / "run"
    return lab.train(*SMALL, run_dir=folder, cache_dir=folder.parent / "cache", seed=3)


def test_a_training_returns_its_metrics_curves_and_translations(run: lab.Run) -> None:
    steps, losses = run.curves()["train/loss"]
    assert (steps[-1], len(losses)) == (8, len(steps))
    assert run.metrics["test/loss"] > 0
    lines = ["twenty-one", "  ", "two days ago"]
    first, blank, other = run.translate(lines)
    assert [[first], [blank], [other]] == [run.translate([line]) for line in lines]
    assert blank == ""
    assert "test/loss" in run._repr_markdown_()


def test_systems_are_compared(run: lab.Run, tmp_path: Path) -> None:
    text = tmp_path / "x.en", tmp_path / "x.de"
    text[0].write_text("two\nthree\n")
    text[1].write_text("zwei\ndrei\n")
    bundle = lab.export(run, tmp_path / "bundle")
    assert isinstance(bundle, Bundle)
    report = lab.evaluate(run, bundle, test=text, run_dir=tmp_path / "report", overlap=False)
    (ours, exported), hypotheses = report.systems, run.translate(["two", "three"])
    assert ours.hypotheses == hypotheses == exported.hypotheses
    assert {c.metric for c in report.comparisons} >= {"bleu", "chrf"}
    assert (report.folder / "report.html").is_file()
    assert "| metric |" in report._repr_markdown_()
    assert [t.text for t in Translator(bundle).translate(["two", "three"])] == hypotheses
    shown = repr((report, bundle))  # in a Python shell: scores and places, not all texts and bytes
    assert str(tmp_path / "bundle") in shown
    assert "Score(value=" in shown
    assert len(shown) < 6000


def test_the_model_can_be_looked_into(run: lab.Run) -> None:
    model = lab.load(run.folder)
    assert isinstance(model, Seq2Seq)
    assert not model.training


def test_a_run_has_its_data_and_a_new_model(run: lab.Run) -> None:
    text = run.held_out()
    assert (text.src_lang, text.tgt_lang) == (run.source.src_lang, run.source.tgt_lang)
    assert len(run.translations()) == len(text.sources) > 0
    with pytest.raises(CorpusError, match="there"):
        run.held_out("there")
    with pytest.raises(CorpusError, match="val"):
        run.translations("val")
    torch.manual_seed(1)
    new = run.new_model()
    assert not new.training
    different = [not old.equal(own.cpu()) for old, own in zip(new.parameters(), run.model.parameters(), strict=True)]
    assert any(different)
    drawn = {"_target_": "softsearch.models.uniform", "_partial_": True, "scale": 0.01}
    run._contents.config["model"]["init"] = drawn  # options of a run are those of its new models
    try:
        assert max(float(each.detach().abs().max()) for each in run.new_model().parameters()) <= 0.01
        drawn["_target_"] = "os.system"
        with pytest.raises(CheckpointError, match=r"model.init is os.system, expected one of"):
            run.new_model()
    finally:
        del run._contents.config["model"]["init"]


def test_weights_from_elsewhere_become_a_run(run: lab.Run, tmp_path: Path) -> None:
    config = OmegaConf.to_container(OmegaConf.load(run.folder / "config.yaml"))
    assert isinstance(config, dict)
    config = {key: config[key] for key in ("name", "model", "data", "tokenizer", "cache_dir")}
    weights = {name: weight.cpu() for name, weight in run.model.state_dict().items()}
    saved = tmp_path / "saved"
    parameters = lab.save(saved, weights, config, run.tokenizers)
    assert parameters == sum(weight.numel() for weight in run.model.weights())
    assert lab.Run(saved).translate(["two", "three"]) == run.translate(["two", "three"])
    with pytest.raises(ConfigError, match="saved exists"):
        lab.save(saved, weights, config, run.tokenizers)
    del weights[min(weights)]
    with pytest.raises(CheckpointError, match="do not fit"):
        lab.save(tmp_path / "other", weights, config, run.tokenizers)
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_steps_are_taken_one_by_one(run: lab.Run) -> None:
    words = [*SMALL, "optimizer.lr=0.01", "scheduler.warmup_steps=1"]
    losses, again = (list(lab.Training(*words, cache_dir=run.cache_dir, seed=3).train(8)) for _ in range(2))
    assert losses == again
    assert losses[-1] < losses[0]
    training = lab.Training(*words, cache_dir=run.cache_dir)
    assert training.parameters == sum(weight.numel() for weight in run.model.parameters())
    (text,) = training.translate(["two"])
    assert isinstance(text, str)
    batch = training.batch(["two"], ["zwei"])
    assert batch.src_tokens.shape[0] == batch.tgt_tokens.shape[0] == 1
    with pytest.raises(ConfigError, match="did you mean"):
        lab.Training(*SMALL, modle="rnn")


def test_data_are_prepared(tmp_path: Path) -> None:
    words = [word for word in SMALL if word.startswith(("data.", "tokenizer."))]
    lab.prepare(*words, processes=1, cache_dir=tmp_path, run_dir=tmp_path / "run")
    assert [*tmp_path.glob("prepared/*/*")]


def test_a_mistake_is_an_exception_and_leaves_nothing_behind(tmp_path: Path) -> None:
    before = HydraConfig.instance().cfg
    with pytest.raises(ConfigError, match="did you mean") as raised:
        lab.train(*SMALL, run_dir=tmp_path, modle="rnn")
    assert raised.value.__suppress_context__  # no hundred lines of Hydra's
    with pytest.raises(ConfigError, match=r"optimizer\.lr"):
        lab.train(*SMALL, run_dir=tmp_path, **{"optimizer.lr": "fast"})
    assert HydraConfig.instance().cfg is before


def test_nothing_that_is_read_is_overwritten(run: lab.Run, tmp_path: Path) -> None:
    table = tmp_path / "x.md"
    table.write_text("two\n")
    with pytest.raises(ConfigError, match="would overwrite"):
        lab.evaluate(run, test=(table, table), table=table, run_dir=tmp_path / "report")
    assert table.read_text() == "two\n"


@pytest.mark.parametrize("value", [None, True, 0.5, "", "a=b, c", ["a b.en", "c,d"], {"beam": [1, 2], "on": False}])
def test_keywords_are_read_as_they_were_given(value: object) -> None:
    from softsearch.app.config.composition import value_of
    from softsearch.app.config.in_process import typed

    (word,) = typed({"key": value})
    assert value_of(word) == value


@pytest.mark.parametrize(
    ("value", "read"),
    [(np.int64(5), 5), (np.float32(0.5), 0.5), (np.bool_(True), True), ([np.int64(1)], [1]), (np.arange(2), [0, 1])],
)
def test_scalars_and_arrays_of_numpy_are_numbers(value: object, read: object) -> None:
    from softsearch.app.config.composition import value_of
    from softsearch.app.config.in_process import typed

    got = value_of(f"key={typed({'key': value})[0].removeprefix('key=')}")
    assert got == read
    assert type(got) is type(read)


def test_a_run_that_exists_is_named_as_text(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"test/bleu": 1.5}')
    assert lab.Run(str(tmp_path)).metrics == {"test/bleu": 1.5}


@pytest.mark.day
def test_the_page_is_typed_as_it_is_printed(
    repo_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = re.findall(
        r"```python\n(from softsearch import lab\n.*?)```", (repo_root / "docs/training.md").read_text(), re.S
    )[0]
    sizes = ", ".join(f'"{word}"' for word in SMALL if word.startswith(("model.", "tokenizer.", "trainer")))
    code = code.replace('"trainer.max_steps=500"', sizes)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOFTSEARCH_CACHE", str(tmp_path / "cache"))
    spoken = ["zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht"]
    for split in ("train", "val", "test"):
        for side, words in (("en", ["two", "three", "four", "five", "six", "seven", "eight"]), ("de", spoken)):
            pairs = [f"{one} {other} {third}" for one in words for other in words for third in words]
            (tmp_path / f"{split}.{side}").write_text(
                "".join(f"{line}\n" for line in pairs[:: 1 if split == "train" else 9])
            )
    exec(compile(code, "docs/training.md", "exec"), names := {})
    assert isinstance(names["bundle"], Bundle)
    assert isinstance(names["model"], Seq2Seq)
    assert [point.name for point in names["report"].systems[0].search_curve] == ["greedy", "beam 5"]


def test_ctrl_c_saves_and_the_run_goes_on(sigint: None, tmp_path: Path) -> None:
    options = {"run_dir": tmp_path / "run", "cache_dir": tmp_path / "cache", "trainer.max_steps": 400, "test": False}
    started = threading.Event()

    def interrupt() -> None:
        log = tmp_path / "run" / "metrics.csv"
        while not started.is_set() and not (log.is_file() and log.read_text().count("\n") > 1):
            started.wait(0.05)
        if not started.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            lab.train(*SMALL, **options)
    finally:
        started.set()
        thread.join()
    assert (tmp_path / "run" / "checkpoints" / "last.ckpt").is_file()
    resumed = lab.train(*SMALL, **options | {"trainer.max_steps": 12, "resume": "auto"})
    assert resumed.curves()["train/loss"][0][-1] >= 4
