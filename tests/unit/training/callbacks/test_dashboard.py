"""What the dashboard writes, read from each logger's own files."""

import csv
import gc
import html
import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import lightning
import pytest
from lightning.pytorch.loggers import Logger, TensorBoardLogger
from matplotlib.figure import Figure
from torch.optim import Adam

from softsearch.app.config.validation import build
from softsearch.data.datamodule import ParallelDataModule
from softsearch.data.sampler import Batching
from softsearch.data.tokenizer_files import JoiningTrainer
from softsearch.models.loss import CrossEntropy
from softsearch.search.greedy import Greedy
from softsearch.testing.models import model_config, small_model
from softsearch.text.tokenizer import TokenizerTrainer
from softsearch.training.callbacks.dashboard import Dashboard
from softsearch.training.callbacks.exact_resume import ExactResume
from softsearch.training.callbacks.sample_heatmaps import draw_samples
from softsearch.training.callbacks.throughput import Throughput
from softsearch.training.callbacks.translate import TranslateValidation
from softsearch.training.loggers.metrics_csv import MetricsFile
from softsearch.training.loggers.tables_and_images import log_folder
from softsearch.training.loggers.wandb_run import WandbRun, closing_run, kept_id
from softsearch.training.module import TranslationModule
from softsearch.training.optimizer.schedules import inverse_sqrt
from tests.support.default_metrics import METRICS, corpus_scores
from tests.support.pairs import write_corpus
from tests.support.wandb_file import TRAINING, VALIDATION, OfflineRun, read_run

STEPS, VALIDATE, LOG, SAMPLES, HEATMAPS = 4, 2, 2, 3, 2
CLIP = 1e-4
CHART = "bleu_by_length/chart"
CONFIG = {"model": {"name": "rnnsearch"}, "git": {"commit": "c0ffee", "dirty": True, "diff_stat": " a.py | 1 +"}}


def fit(folder: Path, loggers: list[Logger], model: str = "rnnsearch", **options: Any) -> lightning.Trainer:
    """A short run with a dashboard, as the command sets it up."""
    data = ParallelDataModule(
        source=write_corpus(folder, train=40, val=20),
        tokenizer=TokenizerTrainer(kind="char", vocab_size=40),
        batching=Batching(tokens=200),
        cache_dir=folder / "cache",
        seed=1,
    )
    data.prepare_data()
    size = data.prepared.src_tokenizer.vocab_size
    module = TranslationModule(
        model=build(model_config(model), src_vocab_size=size, tgt_vocab_size=size),
        loss=CrossEntropy(),
        optimizer=partial(Adam, lr=0.01),
        scheduler=partial(inverse_sqrt, warmup_steps=2),
    )
    for logger in loggers:
        logger.log_hyperparams(CONFIG)
    search = Greedy(max_length_factor=1.0)
    callbacks = [
        Throughput(),
        ExactResume(seed=1),
        TranslateValidation(metrics=METRICS, search=search, samples_dir=folder / "samples", samples=SAMPLES),
        Dashboard(**options),
    ]
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_steps=STEPS,
        val_check_interval=VALIDATE,
        check_val_every_n_epoch=None,
        log_every_n_steps=LOG,
        gradient_clip_val=CLIP,
        num_sanity_val_steps=1,
        callbacks=callbacks,
        logger=loggers,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    trainer.fit(module, datamodule=data)
    return trainer


class Written(NamedTuple):
    """Of one run, what is in the files of three loggers."""

    folder: Path
    validation: TranslateValidation
    csv: dict[str, dict[int, float]]  # key -> step -> number
    tensorboard: list[Any]  # (step, value) of events
    wandb: OfflineRun
    figures: list[Figure]  # those of other tests, from before


def figures() -> list[Figure]:
    gc.collect()
    return [found for found in gc.get_objects() if type(found) is Figure]


def read_csv(path: Path) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            for key, value in row.items():
                if value and key != "step":
                    found.setdefault(key, {})[int(row["step"])] = float(value)
    return found


def read_tensorboard(folder: Path) -> list[Any]:
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    (file,) = folder.glob("events.*")
    events = [Event.FromString(raw) for raw in RawEventFileLoader(str(file)).Load()]
    return [(event.step, value) for event in events for value in event.summary.value]


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """W&B without a network, an account or a file at home; afterwards none of its threads is left."""
    folder, before = tmp_path_factory.mktemp("wandb"), set(threading.enumerate())
    with pytest.MonkeyPatch.context() as patch:
        for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
            patch.setenv(name, str(folder / name))
        for name, value in (("WANDB_MODE", "offline"), ("WANDB_SILENT", "true"), ("WANDB_ERROR_REPORTING", "false")):
            patch.setenv(name, value)
        yield
        import wandb

        wandb.teardown()
    assert {thread.name for thread in set(threading.enumerate()) - before if "wandb" in thread.name.lower()} == set()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, offline: None) -> Written:
    import wandb

    before = figures()
    folder = tmp_path_factory.mktemp("run")
    (folder / "bundle").mkdir()
    (folder / "bundle" / "encoder.onnx").write_bytes(b"a graph")
    with closing_run():
        loggers = [
            MetricsFile(path=folder / "metrics.csv"),
            TensorBoardLogger(folder, name=None, version="tensorboard", default_hp_metric=False),
            WandbRun(run_dir=str(folder), project="p", name="n", group="g", job_type="train", tags=["t"]),
        ]
        trainer = fit(folder, loggers, heatmaps=HEATMAPS)
        log_folder(loggers, folder / "bundle", "n: a bundle", {"test/bleu": 1.5})
    wandb.teardown()  # the end of a run does not wait until the service has written the last of its file
    (file,) = folder.glob("wandb/offline-run-*/*.wandb")
    (validation,) = (c for c in trainer.callbacks if isinstance(c, TranslateValidation))  # type: ignore[attr-defined]
    events = read_tensorboard(folder / "tensorboard")
    return Written(folder, validation, read_csv(folder / "metrics.csv"), events, read_run(file), before)


def test_each_scalar_is_in_the_csv_file(written: Written) -> None:
    assert set(written.csv) >= TRAINING | VALIDATION
    for key in TRAINING | VALIDATION:
        assert list(written.csv[key]) == [2, 4], key
    assert 0 < written.csv["train/padding_efficiency"][4] <= 1
    assert written.csv["train/peak_memory_mb"][4] > 10


def test_tensorboard_has_the_same_scalars(written: Written) -> None:
    found: dict[str, dict[int, float]] = {}
    for step, value in written.tensorboard:
        if value.tensor.dtype == 1 and not value.tensor.string_val:  # DT_FLOAT
            found.setdefault(value.tag, {})[step] = value.tensor.float_val[0]
        elif value.HasField("simple_value"):
            found.setdefault(value.tag, {})[step] = value.simple_value
    assert set(found) == set(written.csv)
    for key, by_step in written.csv.items():
        assert found[key] == pytest.approx(by_step, rel=1e-5), key


def test_wandb_has_the_same_scalars(written: Written) -> None:
    found = written.wandb.scalars()
    assert set(found) == set(written.csv)
    for key, by_step in written.csv.items():
        assert found[key] == pytest.approx(by_step, rel=1e-6), key


def test_gradients_are_measured_before_they_are_clipped(written: Written) -> None:
    assert all(norm > 10 * CLIP for norm in written.csv["grad_norm/total"].values())


def test_each_range_has_the_score_of_its_own_sentences(written: Written) -> None:
    sources, references, hypotheses = zip(*written.validation.translated, strict=True)
    for name, inside in (("01-05", range(1, 6)), ("06-10", range(6, 11))):
        places = [i for i, source in enumerate(sources) if len(source.split()) in inside]
        sides = ([side[i] for i in places] for side in (hypotheses, references))
        expected = corpus_scores(*sides, text_form="plain", tgt_lang="de").values["bleu"]
        assert written.csv[f"bleu_by_length/{name}"][4] == pytest.approx(expected, abs=1e-4)


def test_wandb_has_config_and_state_of_the_code(written: Written) -> None:
    assert {key: written.wandb.config[key] for key in CONFIG} == CONFIG
    run = written.wandb.run
    assert run.run_id == kept_id(written.folder)
    assert (run.project, run.display_name, run.run_group, run.job_type) == ("p", "n", "g", "train")
    assert list(run.tags) == ["t"]
    assert written.wandb.exit_code == 0


def test_wandb_has_a_table_of_samples(written: Written) -> None:
    logged = [row["samples/translations"] for row in written.wandb.history if "samples/translations" in row]
    assert [table["nrows"] for table in logged] == [SAMPLES] * (STEPS // VALIDATE)
    table = json.loads((written.wandb.files / logged[-1]["path"]).read_text())
    assert table["columns"] == ["source", "reference", "translation"]
    assert [tuple(row) for row in table["data"]] == written.validation.sample_lines()


def test_wandb_has_a_chart_and_heatmaps_as_html(written: Written) -> None:
    charts, pages = ([row for row in written.wandb.history if key in row] for key in (CHART, "samples/alignments"))
    assert [[row["trainer/global_step"] for row in rows] for rows in (charts, pages)] == [[2, 4]] * 2
    for row in charts:
        (name,) = row[CHART]["filenames"]
        assert (written.wandb.files / name).read_bytes().startswith(b"\x89PNG")
    page = (written.wandb.files / pages[-1]["samples/alignments"]["path"]).read_text(encoding="utf-8")
    assert page.count('<table class="heatmap">') == HEATMAPS
    for _, _, translation in written.validation.sample_lines()[:HEATMAPS]:
        assert f"<figcaption>{html.escape(translation)}</figcaption>" in page


def test_wandb_has_the_bundle(written: Written) -> None:
    (bundle,) = (artifact for artifact in written.wandb.artifacts if artifact.type == "model")
    assert bundle.name == "n--a-bundle"  # W&B allows no other characters
    assert json.loads(bundle.metadata) == {"test/bleu": 1.5}
    (entry,) = bundle.manifest.contents
    assert (entry.path, entry.local_path) == ("encoder.onnx", str(written.folder / "bundle" / "encoder.onnx"))


def test_tensorboard_has_pictures_and_text(written: Written) -> None:
    kinds = {(value.tag, step): value for step, value in written.tensorboard}
    pictures = [f"{CHART}/0", *(f"samples/alignments/{number}" for number in range(HEATMAPS))]
    for tag in pictures:
        for step in (2, 4):
            value = kinds[tag, step]
            encoded = value.image.encoded_image_string or value.tensor.string_val[-1]
            assert encoded.startswith(b"\x89PNG"), tag
    config = kinds["config/text_summary", 0].tensor.string_val[0].decode()
    assert json.loads(config.removeprefix("```json\n").removesuffix("\n```")) == CONFIG
    table = kinds["samples/translations/text_summary", 4].tensor.string_val[0].decode().splitlines()
    assert len(table) == 2 + SAMPLES
    for line, sample in zip(table[2:], written.validation.sample_lines(), strict=True):
        assert [html.unescape(cell.strip()) for cell in line.strip("|").split("|")] == [
            " ".join(cell.split()) for cell in sample
        ]
    weights = kinds["samples/alignments/0/text_summary", 4].tensor.string_val[0].decode().splitlines()
    assert weights[0].endswith("| &lt;/s&gt; |")
    rows = [[int(cell.strip(" %")) for cell in line.strip("|").split("|")[1:]] for line in weights[2:]]
    assert all(sum(row) == pytest.approx(100, abs=len(row)) for row in rows)


def test_the_samples_are_those_of_the_file(written: Written) -> None:
    text = (written.folder / "samples" / f"step-{STEPS}.txt").read_text(encoding="utf-8")
    lines = written.validation.sample_lines()
    assert len(lines) == SAMPLES
    assert text == "\n".join(f"source       {s}\nreference    {r}\ntranslation  {t}\n" for s, r, t in lines)


def test_no_picture_is_kept_in_memory(written: Written) -> None:
    assert not [figure for figure in figures() if figure not in written.figures]


def test_a_model_without_attention_has_no_heatmaps(tmp_path: Path) -> None:
    fit(tmp_path, [TensorBoardLogger(tmp_path, name=None, version="tb", default_hp_metric=False)], model="gru")
    tags = {value.tag for _, value in read_tensorboard(tmp_path / "tb")}
    assert "samples/translations/text_summary" in tags
    assert not [tag for tag in tags if tag.startswith(("samples/alignments", "grad_norm/attention"))]


def test_scalars_alone_draw_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softsearch.training.callbacks.sample_heatmaps.align", None)  # calling it would fail
    fit(tmp_path, [MetricsFile(path=tmp_path / "metrics.csv")])
    assert set(read_csv(tmp_path / "metrics.csv")) >= TRAINING | VALIDATION


def test_the_words_of_split_text_are_known_in_heatmaps(tmp_path: Path) -> None:
    """A translation is joined, "lower", and the model wrote "low@@ er"."""
    lines = ["low@@ er the new@@ est", "the hou@@ se"]
    tokenizer, _ = JoiningTrainer(kind="word", vocab_size=20, joiner="@@ ").train(lines, [])
    prepared = SimpleNamespace(src_tokenizer=tokenizer, tgt_tokenizer=tokenizer)
    trainer: Any = SimpleNamespace(
        datamodule=SimpleNamespace(prepared=prepared), strategy=SimpleNamespace(model=None), is_global_zero=True
    )
    validation = TranslateValidation(metrics=METRICS, search=Greedy(), samples_dir=tmp_path)
    validation.src, validation.written = [tokenizer.encode(line) for line in lines], lines
    validation.translated = [(line, "", tokenizer.normalize_like_decode(line)) for line in lines]
    first, _ = draw_samples(trainer, small_model("rnnsearch"), validation, 4)
    assert (first.tgt, first.caption) == (["▁low@@", "▁er", "▁the", "▁new@@", "▁est", "</s>"], "lower the newest")
