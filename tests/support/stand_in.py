"""A script in the place of train.py: it takes the same options, writes the same files, and takes no time."""

import json
from pathlib import Path
from typing import Any

from optuna.distributions import CategoricalDistribution
from optuna.samplers import RandomSampler

from softsearch.extras.sweep.study import Plan

SCRIPT = """
import json, pathlib, sys, time

options = dict(option.split("=", 1) for option in sys.argv[1:])
folder = pathlib.Path(options["hydra.run.dir"].strip("'"))
(folder / "options.json").write_text(json.dumps(options))
kind = options["kind"]


def validated(*values):
    lines = ["step,val/bleu,train/loss"] + [f"{10 * (i + 1)},{value}," for i, value in enumerate(values)]
    (folder / "metrics.csv").write_text("\\n".join(lines) + "\\n")


def finished(bleu):
    (folder / "metrics.json").write_text(json.dumps({"test/bleu": bleu, "model/parameters": 7}))


if kind == "good":
    validated(1.0, 5.0, 3.0)
    finished(4.0)
elif kind == "better":
    validated(2.0, 6.0)
    finished(8.0)
elif kind == "nan":
    finished(float("nan"))
elif kind == "bad":
    sys.exit("error: nothing works")
elif kind == "diverging":
    validated(1.0, "nan")
    time.sleep(60)
elif kind == "endless" and "overwrite" in options:
    validated(1.0)
    time.sleep(60)
else:
    finished(9.0)
"""


def install(monkeypatch: Any, folder: Path) -> None:
    """Makes trials run the script."""
    script = folder / "train.py"
    script.write_text(SCRIPT)
    monkeypatch.setattr("softsearch.extras.shared.train_process.TRAIN", (str(script),))
    monkeypatch.setattr("softsearch.extras.sweep.trial._POLL", 0.02)
    monkeypatch.setenv("WANDB_RUN_GROUP", "")  # which the command sets


def plan(folder: Path, *kinds: str, **changes: Any) -> Plan:
    """A sweep over the kinds of endings that the script knows."""
    values: dict[str, Any] = {
        "study": "tried",
        "storage": f"sqlite:///{folder}/study.db",
        "trials": 1,
        "timeout": None,
        "trial_timeout": None,
        "heartbeat": 60,
        "seed": 1,
        "sampler": RandomSampler,
        "pruner": None,
        "report": "val/bleu",
        "objectives": {"test/bleu": "maximize"},
        "fixed": ["seed=3"],
        "overrides": [],
        "space": {"kind": CategoricalDistribution(kinds)} if kinds else {},
        "run_dir": str(folder),
    }
    return Plan(**(values | changes))


def options_of(folder: Path, trial: int) -> dict[str, str]:
    """What the script was called with."""
    options: dict[str, str] = json.loads((folder / "trials" / f"{trial:04d}" / "options.json").read_text())
    return options
