"""The wheel installed outside the clone: with the lab it trains, alone it translates."""

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib.metadata import distribution, distributions, requires
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest
from packaging.requirements import Requirement

from tests.support.commands import ROOT, SMALL, ForkServer, made_once
from tests.support.serving import serving

pytestmark = pytest.mark.day


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def build(project: Path, folder: Path) -> Path:
    """Builds the wheel of a project."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def install(wheel: Path, environment: Path) -> Path:
    """Installs a wheel alone into an environment, made if there is none; returns the folder of its packages."""
    if not (environment / "bin").exists():
        venv.create(environment, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "--quiet", "install"]
    subprocess.run([*pip, "--no-index", "--no-deps", str(wheel)], check=True)
    return next((environment / "lib").glob("python*/site-packages"))


@pytest.fixture(scope="module")
def having(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The environment with the wheel and what its extras bring."""

    def make(environment: Path) -> None:
        packages, (_, *extras) = install(wheel, environment), environment.name.split("-")
        names = [link_requirements(packages, extra) for extra in extras or [""]]
        assert extras or names == [{"lazy-loader", "numpy", "packaging", "regex", "sentencepiece"}]
        assert (packages / "torch").exists() == ("lab" in extras)

    return lambda *extras: made_once(tmp_path_factory, "-".join(("having", *extras)), make)


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


def test_the_wheel_holds_the_page_so_that_sites_need_no_node(
    having: Callable[..., Path], page: Path, tmp_path: Path
) -> None:
    single = ROOT / "tests" / "golden" / "single"
    done = run(having(), "web", str(single), "--out", "site", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = {path.name for path in (tmp_path / "site").iterdir()}
    assert {path.name for path in page.iterdir() if path.is_file()} | {"models", "site.json"} == written


def test_with_the_lab_it_trains_in_any_folder_with_configs_of_the_users_own(
    having: Callable[..., Path], tmp_path: Path
) -> None:
    with_lab = having("lab")
    own = tmp_path / "mine" / "experiment" / "short.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("# @package _global_\ndefaults: [demo]\nname: mine\ntrainer: {max_steps: 10}\n")
    small = [option for option in SMALL if not option.startswith(("experiment=", "trainer.max_steps="))]
    train = ("train", "--config-dir", "mine", "experiment=short", *small)
    done = run(with_lab, *train, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folders = list((tmp_path / "logs" / "train").iterdir())
    assert [(folder / "metrics.json").is_file() for folder in folders] == [True]
    assert "mine with" in done.stdout + done.stderr


@pytest.mark.nightly
def test_a_package_of_ones_own_goes_through_every_command(having: Callable[..., Path], tmp_path: Path) -> None:
    with_lab = having("lab")
    home, example = tmp_path / "my_attention", ROOT / "examples" / "my_attention"
    server = ForkServer(str(with_lab / "bin" / "python"))

    def command(name: str, *options: str, stdin: str = os.devnull) -> str:
        done = server.run(["softsearch", name, *options], cwd=home, stdin=stdin)
        assert done.returncode == 0, (name, done.stderr)
        return done.stdout

    for part in ("model", "data", "metric", "method", "command"):
        done = run(with_lab, "new", part, "my_attention", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    files = {path.relative_to(home): path.read_text() for path in home.rglob("*") if path.is_file()}
    tracked = subprocess.run(["git", "ls-files"], cwd=example, capture_output=True, text=True, check=True).stdout
    assert files == {Path(name): (example / name).read_text() for name in tracked.split()}
    install(build(home, tmp_path), with_lab)

    for split, count in {"train": 200, "val": 5, "test": 5}.items():
        rows = [f"{' '.join(digits)}\t{' '.join(reversed(digits))}\n" for digits in map(str, range(10, 10 + count))]
        (home / f"{split}.tsv").write_text("".join(rows))
    data = ("data=my_attention", *(f"data.{split}={split}.tsv" for split in ("train", "val", "test")))
    small = [option for option in SMALL if not option.startswith(("experiment=", "model", "data"))]
    sizes = (option for option in SMALL if option.endswith("dim=16") and "attention" not in option)
    own = ("model=my_attention", "method=my_attention", "metric=[my_attention,bleu]", "data.src_lang=en",
           "data.tgt_lang=de")  # fmt: skip
    train = ("train", *own, *data, *small, *sizes, "hydra.run.dir=run")
    command(*train)
    command(*train, "resume=auto", "trainer.max_steps=10")
    metrics = json.loads((home / "run" / "metrics.json").read_text())
    assert 0 <= metrics["test/my_attention"] <= 100
    command("evaluate", "ckpt=run", "metric=[my_attention]", "hydra.run.dir=report")  # to install it is consent
    report = json.loads((home / "report" / "report.json").read_text())
    assert report["systems"][0]["scores"].keys() == {"my_attention"}
    command("score", "ckpt=run", "hydra.run.dir=scores")  # the lab's
    assert len((home / "scores" / "scores.tsv").read_text().splitlines()) == 5
    command("export", "ckpt=run", "out=bundle")
    sources = (home / "test.tsv").read_text().replace("\t", "\n").splitlines()[::2]
    (home / "src").write_text("".join(f"{line}\n" for line in sources))
    written = command("translate", "bundle", stdin=str(home / "src"))
    assert command("my_attention", "text=src", "longest=1").startswith("5 sentences, ")
    server.stop()
    assert written.splitlines() == (home / "run" / "test.hypotheses.txt").read_text().splitlines()
    with serving(f"own={home / 'bundle'}") as served:
        answer = httpx.post(f"{served.url}/translate", json={"q": sources[0], "source": "en", "target": "de"}).json()
    assert answer["translatedText"] == written.splitlines()[0]
    assert "cannot be the name of a package" in run(with_lab, "new", "model", "json", cwd=tmp_path).stderr
    assert "attention.py exists" in run(with_lab, "new", "model", "my_attention", cwd=tmp_path).stderr


def requirements(needs: list[str], extra: str = "") -> set[str]:
    """Returns the distributions that these requirements bring, and all that those need."""
    found = set()
    for requirement in map(Requirement, needs):
        if not requirement.marker or requirement.marker.evaluate({"extra": extra}):
            found |= {requirement.name, *requirements(requires(requirement.name) or [])}
    return found


def link_requirements(packages: Path, extra: str) -> set[str]:
    """Links what the installed wheel requires from this environment; returns the names."""
    (installed,) = distributions(name="softsearch", path=[str(packages)])
    names = requirements(installed.requires or [], extra)
    for name in names:
        files = distribution(name).files or []
        for entry in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (packages / entry).exists():
                (packages / entry).symlink_to(Path(str(distribution(name).locate_file(entry))))
    return names


def test_with_the_extra_cpu_it_translates_and_says_what_training_needs(
    having: Callable[..., Path], bundle: Path, tmp_path: Path
) -> None:
    lines = "seven\ntwenty-one\n"
    done = run(having("cpu"), "translate", str(bundle), cwd=tmp_path, text=lines)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    (tmp_path / "src").write_text(lines)
    done = run(having("cpu"), "score", str(bundle), "src", "src", cwd=tmp_path)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2), done.stderr
    for command in (("train",), ("score", "ckpt=a.ckpt"), ("demo",)):
        done = run(having("cpu"), *command, cwd=tmp_path)
        assert done.returncode == 1
        assert re.search(r"which is not installed: pip install '\S*\[lab\]", done.stderr)
        assert "Traceback" not in done.stderr


def test_alone_it_says_which_onnx_runtime_to_install(having: Callable[..., Path], bundle: Path, tmp_path: Path) -> None:
    advice = r"error: ONNX Runtime is not installed: pip install '.*\[cpu\].*'; or with gpu for cpu, on a host with an "
    (tmp_path / "src").write_text("seven\n")
    for command in ("translate", "verify", "score", "bench"):
        files = {"score": ["src", "src"], "bench": ["src"]}.get(command, [])
        done = run(having(), command, str(bundle), *files, cwd=tmp_path, text="seven\n")
        assert (done.returncode, done.stdout) == (1, "")
        assert re.match(f"softsearch: {advice}", done.stderr)
    for command in (["--version"], ["--help"], ["translate", "--help"]):
        assert run(having(), *command, cwd=tmp_path).returncode == 0
    script = f"import softsearch; softsearch.Bundle.open({str(bundle)!r}); softsearch.Translator({str(bundle)!r})"
    python = [str(having() / "bin" / "python"), "-I", "-c", script]
    done = subprocess.run(python, capture_output=True, text=True, check=False, timeout=60)
    assert re.search(advice.removeprefix("error: "), done.stderr.splitlines()[-1])


def test_another_wheel_of_onnx_runtime_takes_the_place_of_the_cpus(having: Callable[..., Path]) -> None:
    """Two of them own the same module and break each other, so no extra but the lab's brings the CPU's by itself."""
    (installed,) = distributions(
        name="softsearch", path=[str(packages) for packages in having().glob("lib/*/site-packages")]
    )
    wheels = {}
    for extra in ("", "cpu", "gpu"):
        brought = [
            r for r in map(Requirement, installed.requires or []) if not r.marker or r.marker.evaluate({"extra": extra})
        ]
        wheels[extra] = [r.name for r in brought if r.name.startswith("onnxruntime")]
    assert wheels == {"": [], "cpu": ["onnxruntime"], "gpu": ["onnxruntime-gpu"]}


def test_with_the_extras_of_the_image_it_serves(
    having: Callable[..., Path], bundle: Path, tmp_path: Path, popen: Callable[..., subprocess.Popen[str]]
) -> None:
    """As docs/deploy/Dockerfile installs and checks it."""
    command = ("serve", "--host", "127.0.0.1", "--port", "0", "--workers", "1", f"demo={bundle}")
    environment = {"PATH": os.defpath, "OMP_NUM_THREADS": "1"}
    image = having("cpu", "serve") / "bin"
    started = [image / "softsearch", *command]
    server = popen(started, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    events = []
    for line in server.stderr:
        events.append(json.loads(line))
        if events[-1]["event"] == "ready":
            break
    port = str(next(event["port"] for event in events if "port" in event))
    dockerfile = (ROOT / "docs" / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    (check,) = re.findall(r"^ +CMD (\[.*\])$", dockerfile, flags=re.MULTILINE)
    healthy = subprocess.run(
        [image / "python", "-c", json.loads(check)[2].replace("8000", port)], check=False, timeout=60
    )
    server.terminate()
    server.communicate()
    assert (healthy.returncode, server.returncode) == (0, 143)
