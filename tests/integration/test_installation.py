"""The wheel installed outside the clone: with the lab it trains, alone it translates."""

import os
import subprocess
import sys
import venv
from importlib.metadata import distribution, requires
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from tests.integration.commands import ROOT, SMALL

pytestmark = pytest.mark.slow
BASE = ("numpy", "onnxruntime", "sentencepiece")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def install(wheel: Path, folder: Path) -> Path:
    """Installs the wheel alone into a fresh environment; returns the folder of its packages."""
    venv.create(folder, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--quiet"]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", str(wheel)], check=True)
    return next((folder / "lib").glob("python*/site-packages"))


def run(environment: Path, *arguments: str, cwd: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the environment's ``softsearch``, which cannot import from this clone."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(environment / "bin" / "softsearch"), *arguments],
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=variables | {"OMP_NUM_THREADS": "1", "SOFTSEARCH_CACHE": str(cwd / "cache")},
    )


def test_the_wheel_holds_templates_styles_configs_and_types(wheel: Path) -> None:
    folders = {ROOT / "src" / "softsearch": "softsearch", ROOT / "configs": "softsearch/configs"}
    files = {
        f"{place}/{path.relative_to(folder).as_posix()}"
        for folder, place in folders.items()
        for path in folder.rglob("*.*")
        if path.suffix != ".pyc" and folder / "local" not in path.parents
    }
    assert files <= set(ZipFile(wheel).namelist())
    assert {"softsearch/py.typed", "softsearch/configs/train.yaml"} <= files


def test_with_the_lab_it_trains_in_any_folder_with_configs_of_the_users_own(wheel: Path, tmp_path: Path) -> None:
    packages = install(wheel, tmp_path / "environment")
    installed = [path for path in sys.path if path.endswith("site-packages")]  # the lab; editable installs stay out
    (packages / "lab.pth").write_text("\n".join(installed))
    own = tmp_path / "mine" / "experiment" / "short.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("# @package _global_\ndefaults: [demo]\nname: mine\ntrainer: {max_steps: 10}\n")
    small = [option for option in SMALL if not option.startswith(("experiment=", "trainer.max_steps="))]
    train = ("train", "--config-dir", "mine", "experiment=short", *small)
    done = run(tmp_path / "environment", *train, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folders = list((tmp_path / "logs" / "train").iterdir())
    assert [(folder / "metrics.json").is_file() for folder in folders] == [True]
    assert "mine with" in done.stdout + done.stderr

    score = (
        "score",
        f"ckpt={folders[0]}/checkpoints/best.ckpt",
        "hydra.run.dir=scores",
    )  # the lab's
    done = run(tmp_path / "environment", *score, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "scores" / "scores.tsv").read_text().splitlines()) == 20


def requirements(names: tuple[str, ...]) -> set[str]:
    """Returns the named distributions and all their dependencies."""
    needed = set(names)
    for name in names:
        needs = [r for r in map(Requirement, requires(name) or []) if not r.marker or r.marker.evaluate({"extra": ""})]
        needed |= requirements(tuple(r.name for r in needs))
    return needed


def test_alone_it_translates_and_says_what_training_needs(wheel: Path, bundle: Path, tmp_path: Path) -> None:
    packages = install(wheel, tmp_path / "environment")
    for name in requirements(BASE):
        files = distribution(name).files or []
        for entry in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            target = Path(str(distribution(name).locate_file(entry)))
            if not (packages / entry).exists():
                (packages / entry).symlink_to(target)
    assert not (packages / "torch").exists()

    lines = "seven\ntwenty-one\n"
    done = run(tmp_path / "environment", "translate", str(bundle), cwd=tmp_path, text=lines)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    (tmp_path / "src").write_text(lines)
    done = run(tmp_path / "environment", "score", str(bundle), "src", "src", cwd=tmp_path)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2), done.stderr
    for command in (("train",), ("score", "ckpt=a.ckpt"), ("demo",)):
        done = run(tmp_path / "environment", *command, cwd=tmp_path)
        assert done.returncode == 1
        assert "which is not installed: pip install 'softsearch[lab]'" in done.stderr
        assert "Traceback" not in done.stderr
