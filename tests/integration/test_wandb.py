"""W&B through the real command, offline: killed and resumed, in a sweep, on two processes."""

import signal
from pathlib import Path

import pytest
import torch
import yaml

from tests.support.commands import SMALL, run
from tests.support.faulty_trainings import train_with_faults
from tests.support.wandb_file import TRAINING, VALIDATION, OfflineRun, read_run

pytestmark = pytest.mark.day

KILL, SAVED, STEPS = 6, 4, 8  # SMALL validates, and saves, after step 4


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables that keep W&B offline, with its files in this test's folder."""
    names = ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR")
    home = {name: str(tmp_path / "home" / name) for name in names}
    return home | {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_API_KEY": "",
                   "WANDB__TRANSACTION_LOG_FLUSH_INTERVAL": "0.2"}  # fmt: skip


def offline_runs(folder: Path) -> list[OfflineRun]:
    """Returns the parts of a run in the order of their starts."""
    return [read_run(path) for path in sorted(folder.glob("wandb/offline-run-*/*.wandb"))]


@pytest.mark.nightly
def test_a_killed_run_goes_on_as_the_same_run(trained: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    options = [*SMALL, "logger=many", "callbacks.dashboard.bundle=true", "search=greedy", "resume=auto",
               f"hydra.run.dir={tmp_path / 'run'}", f"cache_dir={trained.parent / 'cache'}"]  # fmt: skip
    killed = train_with_faults(options, {0: {KILL: "sigkill"}}, **environment)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    run_id = (tmp_path / "run" / "wandb_id").read_text().strip()
    resumed = run("train.py", *options, **environment)
    assert resumed.returncode == 0, resumed.stderr
    assert "Warning" not in resumed.stderr
    first, second = offline_runs(tmp_path / "run")
    assert [part.run.run_id for part in (first, second)] == [run_id] * 2
    assert second.exit_code == 0
    assert first.run.resume
    # SMALL logs every second step.
    assert sorted(first.scalars()["grad_norm/total"]) == [2, 4, 6]
    assert sorted(second.scalars()["grad_norm/total"]) == [SAVED + 2, STEPS]
    by_length = {key for key in VALIDATION if key.startswith("bleu_by_length/")}  # other sentences here, other ranges
    pictures = {"samples/translations", "samples/alignments"}  # too few sentences for a chart
    tested = {f"test/{name}" for name in ("bleu", "chrf", "ter", "exact_match", "loss")}
    assert second.keys >= TRAINING | (VALIDATION - by_length) | pictures | tested
    assert any(key.startswith(("bleu_by_length/0", "bleu_by_length/1")) for key in second.keys)
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert {key: second.config[key] for key in config} == config
    assert set(second.config["git"]) == {"commit", "dirty", "diff_stat"}
    assert (second.run.run_group, second.run.job_type) == ("", "train")
    (bundle,) = (artifact for artifact in second.artifacts if artifact.type == "model")
    assert bundle.name == "nematus-bundle"
    assert {entry.path for entry in bundle.manifest.contents} == {
        path.name for path in (tmp_path / "run" / "bundle").iterdir()
    }


@pytest.mark.nightly
def test_jobs_of_a_sweep_are_a_group_of_runs(trained: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    done = run("train.py", "-m", *SMALL, "seed=1,2", "logger=wandb", "trainer.max_steps=2", "search=greedy",
               "trainer.val_check_interval=2", f"hydra.sweep.dir={tmp_path / 'seeds'}",
               f"cache_dir={trained.parent / 'cache'}", **environment)  # fmt: skip
    assert done.returncode == 0, done.stderr
    jobs = [offline_runs(tmp_path / "seeds" / f"{job}_seed-{job + 1}") for job in range(2)]
    assert [len(parts) for parts in jobs] == [1, 1]
    runs = [part.run for (part,) in jobs]
    assert [found.run_group for found in runs] == ["seeds", "seeds"]
    assert [found.display_name for found in runs] == ["nematus_seed=1", "nematus_seed=2"]
    assert runs[0].run_id != runs[1].run_id
    assert [part.config["seed"] for (part,) in jobs] == [1, 2]
    assert [part.exit_code for (part,) in jobs] == [0, 0]


@pytest.mark.multiprocess
@pytest.mark.skipif(torch.cuda.is_available(), reason="trainer=ddp takes the GPUs of this machine")
def test_two_processes_have_one_dashboard(trained: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    done = run("train.py", *SMALL, "logger=many", "trainer=ddp", "trainer.max_steps=4", "search=greedy",
               f"hydra.run.dir={tmp_path / 'run'}", f"cache_dir={trained.parent / 'cache'}", **environment)  # fmt: skip
    assert done.returncode == 0, done.stderr
    (part,) = offline_runs(tmp_path / "run")
    assert part.exit_code == 0
    assert sorted(part.scalars()["grad_norm/total"]) == [2, 4]
    assert [row["trainer/global_step"] for row in part.history if "samples/alignments" in row] == [4]
    assert len(list((tmp_path / "run" / "tensorboard").glob("events.*"))) >= 1
