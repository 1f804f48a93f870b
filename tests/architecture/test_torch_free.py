"""Text, search and runtime load where the lab's libraries are not installed."""

import subprocess
from pathlib import Path

import pytest

from softsearch.doors import MODULES, PACKAGES, ROOMS
from tests.architecture.test_dependencies import OPTIONAL
from tests.support.programs import run_python

# Stands in for a host with the base install alone: the lab's libraries cannot be found by the interpreter.
BLOCKER = """
import importlib, sys

LAB = set("torch lightning pytorch_lightning torchmetrics hydra omegaconf onnx onnxscript sacrebleu matplotlib rich "
          "pooch num2words babel wandb tensorboard yaml fastapi uvicorn starlette pydantic h11 "
          "prometheus_client".split())

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in LAB:
            raise ModuleNotFoundError(f"blocked: {name} belongs to the lab", name=name)

sys.meta_path.insert(0, Blocker())
for module in sys.argv[1:]:
    importlib.import_module(module)
assert not LAB & set(sys.modules)
"""


def _import_without_lab(repo_root: Path, *modules: str) -> subprocess.CompletedProcess[str]:
    return run_python("-W", "error", "-c", BLOCKER, *modules, PYTHONPATH=str(repo_root / "src"))


def _modules(repo_root: Path, layer: str) -> list[str]:
    src = repo_root / "src"
    names = [
        ".".join(path.relative_to(src).with_suffix("").parts) for path in (src / "softsearch" / layer).rglob("*.py")
    ]
    served = {f"softsearch.{place.replace('/', '.')}" for place in OPTIONAL["serve"]}  # has an extra of its own
    return sorted({name.removesuffix(".__init__") for name in names} - served)


@pytest.mark.parametrize("layer", ["text", "search", "runtime", "extras/serve"])
def test_layer_loads_without_the_lab(layer: str, repo_root: Path) -> None:
    modules = _modules(repo_root, layer)
    assert len(modules) > 1
    done = _import_without_lab(repo_root, *modules)
    assert done.returncode == 0, done.stderr


def test_doors_and_rooms_open_without_the_lab(repo_root: Path) -> None:
    """Their names are imported on first use; softsearch.testing needs pytest, which only tests have."""
    doors = [f"softsearch.{name}" for name in (*PACKAGES, *MODULES, *ROOMS) if name != "testing"]
    done = _import_without_lab(repo_root, *doors)
    assert done.returncode == 0, done.stderr


def test_command_line_answers_without_the_lab(repo_root: Path) -> None:
    done = _import_without_lab(repo_root, "softsearch.runtime.cli")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("module", "missing"), [("softsearch.models.layers", "torch"), ("softsearch.training.module", "lightning|torch")]
)
def test_blocker_notices(module: str, missing: str, repo_root: Path) -> None:
    done = _import_without_lab(repo_root, module)
    assert done.returncode != 0
    assert any(f"blocked: {name}" in done.stderr for name in missing.split("|")), done.stderr
