"""The commands as users type them, on one small run."""

import csv
import json
import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest
import yaml
from packaging.requirements import Requirement

from softsearch.app.train.run_folder import only_run
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.runtime.cli import main as softsearch
from softsearch.runtime.translator import Translator
from softsearch.search.batching import translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.training.checkpoints.checkpoint_contents import read_contents
from tests.support.commands import ROOT, SMALL, run

LINES = ["twenty-one", "", "the third of may", "  ", "five hundred dollars", "\U0001f642 ten"]


def test_a_run_folder_holds_what_the_contract_says(trained: Path) -> None:
    metrics = json.loads((trained / "metrics.json").read_text())
    for key in ("bleu", "chrf", "ter", "exact_match", "loss"):
        assert np.isfinite(metrics[f"test/{key}"])
    assert metrics["train/tokens_per_second"] > 0
    assert metrics["train/steps"] == 8
    assert metrics["signatures"]["test/bleu"].startswith("nrefs:1")
    assert len((trained / "test.hypotheses.txt").read_text(encoding="utf-8").split("\n")) == 21
    config = yaml.safe_load((trained / "config.yaml").read_text())
    assert config["trainer"]["max_steps"] == 8
    assert config["run_dir"] == str(trained)
    rows = list(csv.DictReader((trained / "metrics.csv").read_text().splitlines()))
    assert [float(row["val/bleu"]) >= 0 for row in rows if row["val/bleu"]] == [True, True]
    assert any(row["tokens/s"] for row in rows)
    assert (trained / "curves.png").read_bytes().startswith(b"\x89PNG")
    said = r"parameters: emb.* enc.* att.* dec.* output [\d,]+\n.* 1 process on CPU .*\n.* at most 8 steps; run folder "
    assert re.search(said + re.escape(str(trained)), (trained / "train.log").read_text())
    samples = (trained / "samples" / "step-8.txt").read_text(encoding="utf-8")
    assert samples.count("reference") == samples.count("translation") == 8
    assert {path.name for path in (trained / "checkpoints").iterdir()} == {
        "best.ckpt",
        "last.ckpt",
        "step-4.ckpt",
        "step-8.ckpt",
    }


def test_evaluate_repeats_the_test_of_the_run(trained: Path, tmp_path: Path) -> None:
    done = run("evaluate.py", f"ckpt={trained / 'checkpoints' / 'best.ckpt'}", f"hydra.run.dir={tmp_path}",
               "search.max_length_factor=1", f"cache_dir={trained.parent / 'cache'}")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "test.hypotheses.txt").read_bytes() == (trained / "test.hypotheses.txt").read_bytes()
    ours, theirs = (json.loads((folder / "metrics.json").read_text()) for folder in (tmp_path, trained))
    assert ours["test/bleu"] == theirs["test/bleu"]
    assert ours["test/loss"] == pytest.approx(theirs["test/loss"], rel=1e-5)


def test_the_bundle_translates_token_for_token_as_torch_does(trained: Path, bundle: Path) -> None:
    from softsearch.app.config.build import rebuild_model

    saved = read_contents(trained / "checkpoints" / "best.ckpt")
    sources = (trained.parent / "cache").glob("spellout-*/test.en")
    lines = next(iter(sources)).read_text(encoding="utf-8").splitlines()
    ids = [saved.tokenizers[0].encode(line) for line in lines]
    search = BeamSearch(beam=5, max_length_factor=2.0, max_length_offset=10)
    torch_says = translate_ids(TorchStepFunction(rebuild_model(saved)), search, ids, batch_tokens=1024)
    onnx_says = Translator(bundle).translate(lines)
    assert [translation.text for translation in onnx_says] == [
        saved.tokenizers[1].decode(h[0].tokens) for h in torch_says
    ]


def test_verify_names_an_altered_file(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert softsearch(["verify", str(bundle)]) == 0
    copy = shutil.copytree(bundle, tmp_path / "copy")
    content = bytearray((copy / "encoder.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (copy / "encoder.onnx").write_bytes(content)
    capsys.readouterr()
    assert softsearch(["verify", str(copy)]) == 1
    assert "encoder.onnx has sha256" in capsys.readouterr().err


@pytest.mark.day  # unit/export/test_bundle.py
def test_export_refuses_a_folder_that_is_something_else(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    done = run("export.py", f"ckpt={trained / 'checkpoints' / 'best.ckpt'}", f"out={tmp_path}",
               f"hydra.run.dir={trained.parent / 'export'}")  # fmt: skip
    assert done.returncode == 1
    assert "is not a bundle" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.day  # unit/app/test_hostile_files.py
@pytest.mark.parametrize("damage", ["missing", "truncated", "other"])
def test_evaluate_refuses_a_bad_checkpoint(damage: str, trained: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.ckpt"
    if damage == "truncated":
        bad.write_bytes((trained / "checkpoints" / "best.ckpt").read_bytes()[:1000])
    elif damage == "other":
        bad.write_text("not a checkpoint")
    done = run("evaluate.py", f"ckpt={bad}", f"hydra.run.dir={tmp_path / 'out'}")
    assert done.returncode == 1
    assert str(bad) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.day
def test_translate_works_in_an_environment_with_the_base_install_alone(bundle: Path, tmp_path: Path) -> None:
    """Fault: a host without PyTorch.

    Effect: `softsearch translate` works.

    A virtual environment that holds softsearch, its dependencies and theirs, linked from this one.
    """
    venv.create(tmp_path / "env", with_pip=False)
    site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    for name in _base_closure():
        _link(name, site)
    (site / "softsearch").symlink_to(ROOT / "src" / "softsearch")
    command = [str(tmp_path / "env" / "bin" / "python"), "-m", "softsearch.runtime.cli", "translate", str(bundle)]
    done = subprocess.run(command, input="\n".join(LINES) + "\n", capture_output=True, text=True, check=True)
    assert len(done.stdout.split("\n")) == len(LINES) + 1
    assert [line == "" for line in done.stdout.split("\n")[:4]] == [False, True, False, True]
    blocked = subprocess.run([*command[:1], "-c", "import torch"], capture_output=True, text=True, check=False)
    assert "No module named 'torch'" in blocked.stderr


def test_the_folder_of_a_run_is_not_taken_over(trained: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(trained, tmp_path / "run")
    (folder / "notes.txt").write_text("mine")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    options = [*SMALL, f"hydra.run.dir={folder}", f"cache_dir={trained.parent / 'cache'}", "seed=2"]
    done = run("train.py", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"error: {folder} already has a run (checkpoints/best.ckpt); set hydra.run.dir=FOLDER"
    )
    with only_run(folder):
        busy = run("train.py", *options, "overwrite=true")
    assert busy.returncode == 2
    assert f"error: another training writes to {folder}; wait until it ends" in busy.stderr
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    done = run("train.py", *options, "overwrite=true", "trainer.max_steps=2", "trainer.val_check_interval=2")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (folder / "checkpoints").iterdir()} == {"best.ckpt", "last.ckpt", "step-2.ckpt"}
    assert [path.name for path in (folder / "samples").iterdir()] == ["step-2.txt"]
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.day
def test_all_loggers_at_once_without_network_or_account(trained: Path, tmp_path: Path) -> None:
    done = run("train.py", *SMALL, "logger=many", f"hydra.run.dir={tmp_path}", f"cache_dir={trained.parent / 'cache'}",
               WANDB_API_KEY="", WANDB_SILENT="true", WANDB_DIR=str(tmp_path))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert list(tmp_path.glob("tensorboard/events.*"))
    assert (tmp_path / "metrics.csv").is_file()


@pytest.mark.day
def test_a_sweep_gives_each_job_a_folder(trained: Path, tmp_path: Path) -> None:
    done = run("train.py", "-m", *SMALL, "seed=1,2", f"hydra.sweep.dir={tmp_path}",
               f"cache_dir={trained.parent / 'cache'}")  # fmt: skip
    assert done.returncode == 0, done.stderr
    folders = [tmp_path / f"{job}_seed-{job + 1}" for job in range(2)]
    assert [yaml.safe_load((folder / "config.yaml").read_text())["seed"] for folder in folders] == [1, 2]
    losses = {json.loads((folder / "metrics.json").read_text())["test/loss"] for folder in folders}
    assert len(losses) == 2
    assert done.stdout.count("next:") == 1
    assert done.stdout.endswith(f"next: softsearch compare '{tmp_path}/*'\n")


def _base_closure() -> set[str]:
    """The distributions that ``pip install softsearch[cpu]`` brings."""
    found: set[str] = set()
    waiting = ["lazy_loader", "numpy", "onnxruntime", "regex", "sentencepiece"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for text in distribution(name).requires or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return found


def _link(name: str, site: Path) -> None:
    """Links a distribution's top-level files and folders into another environment."""
    installed = distribution(name)
    for top in {file.parts[0] for file in installed.files or []} - {"..", "__pycache__"}:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(installed.locate_file(top))))


def test_a_reader_that_needs_no_more_is_no_error() -> None:
    command = [sys.executable, str(ROOT / "src/train.py"), "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
