"""Data that ``prepare`` has prepared is found by ``train``."""

import json
from pathlib import Path

import pytest

from softsearch.app.config.build import build_data
from softsearch.app.config.composition import composed
from tests.support.commands import SMALL, run
from tests.support.pairs import write_pair


def test_training_finds_what_was_prepared(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    done = run("prepare", *SMALL, "processes=2", f"cache_dir={cache}", f"hydra.run.dir={tmp_path / 'log'}")
    assert done.returncode == 0, done.stderr
    (folder,) = (path for path in (cache / "prepared").iterdir() if path.is_dir())
    assert str(folder) in done.stdout
    assert "300" in done.stdout
    stamps = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    data = build_data(composed("train", *SMALL, f"cache_dir={cache}", "name=test", f"run_dir={tmp_path}"))
    data.prepare_data()
    assert data.prepared.folder == folder
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == stamps


@pytest.mark.day
def test_the_report_counts_what_was_dropped_and_mistakes_are_answered(tmp_path: Path) -> None:
    train, val = write_pair(tmp_path, "train", 30), write_pair(tmp_path, "val", 4)
    for path, odd in zip(train, (b"a b\nwho?\na\n", "а б\nwer.\n".encode() + b"a b c d" * 50 + b"\n"), strict=True):
        path.write_bytes(path.read_bytes() + b"same\nsame\n" + odd)
    files = [f"data.{name}=[{pair[0]},{pair[1]}]" for name, pair in (("train", train), ("val", val))]
    options = ["data=parallel", *files, "tokenizer=char", f"cache_dir={tmp_path}", f"hydra.run.dir={tmp_path / 'log'}"]
    languages = ("data.src_lang=en", "data.tgt_lang=de")
    filters = [
        f"data.filters.{name}"
        for name in ("identical=true", "min_script=0.5", "end_punctuation=true", "max_length_z=4")
    ]
    done = run("prepare", *options, "processes=1", *languages, *filters, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    assert "2 dropped for the same text on both sides" in done.stdout
    report = json.loads(next((tmp_path / "prepared").glob("*/report.json")).read_text())
    (corpus,) = report["corpora"]["train"]
    assert (corpus["lines"], corpus["kept"], corpus["untranslated"]) == (35, 30, 2)
    assert (corpus["script"], corpus["punctuation"], corpus["unusual"]) == (1, 1, 1)
    wrong = run("prepare", *options, "proceses=1")
    assert wrong.returncode == 2
    assert "there is no config key 'proceses'; did you mean 'processes'?" in wrong.stderr


@pytest.mark.day
def test_a_store_is_written_and_trained_from_without_the_text(tmp_path: Path) -> None:
    train, val = write_pair(tmp_path, "train", 60), write_pair(tmp_path, "val", 8)
    files = [f"data.{name}=[{pair[0]},{pair[1]}]" for name, pair in (("train", train), ("val", val))]
    store = f"file://{tmp_path}/store"
    done = run("prepare", "data=parallel", *files, "tokenizer=char", f"cache_dir={tmp_path}/1", f"store={store}")
    assert done.returncode == 0, done.stderr
    assert f"written: data=prepared data.root={store}" in done.stdout
    for path in (*train, *val):
        path.unlink()
    options = ["data=prepared", f"data.root={store}", "model=rnnsearch", "trainer=cpu", "trainer.max_steps=2"]
    options += ["trainer.val_check_interval=2", f"cache_dir={tmp_path}/2", f"hydra.run.dir={tmp_path}/run"]
    trained = run("train", *options, "tokenizer=char")
    assert trained.returncode == 0, trained.stderr
    assert (tmp_path / "run" / "metrics.json").is_file()
    assert len([*(tmp_path / "2" / "parts").glob("shard-*")]) == 2  # of training and of validation
    both = run("prepare", "data=parallel", *files, "part=1/2", f"store={store}")
    assert both.returncode == 2
    assert "part and store are both set; make the parts first" in both.stderr
