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
