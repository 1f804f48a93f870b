"""What files of a stranger may choose: no file of the host, no address, and no depth that exhausts a reader."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from softsearch.app.config.allowed_classes import build_from_file
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.app.results import read_metrics
from softsearch.app.systems.weights_file import read_tuned
from softsearch.data.corpora.base import ParallelSource
from softsearch.data.corpora.multi30k import UPSTREAM
from softsearch.data.preparation.cache_folder import damage
from softsearch.errors import BundleError, ConfigError, CorpusError
from softsearch.evaluation.schema import read_report
from softsearch.extras.sweep.runs import read_runs
from softsearch.runtime.bundle_writing import write_bundle
from softsearch.training.checkpoints.checkpoint_contents import ORIGIN
from tests.support.bundles import bundle_parts
from tests.unit.app.opening import Home, composed, make_home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_home(tmp_path_factory.mktemp("home"))


def outside(home: Home, data: dict[str, Any], *, of_run: bool) -> Path:
    """A checkpoint whose config has other data, in its run's folder or elsewhere."""
    home.save(lambda checkpoint: checkpoint[ORIGIN]["config"]["data"].update(data))
    if of_run:
        return home.other
    elsewhere = home.folder / "downloads" / "step-1.ckpt"
    elsewhere.parent.mkdir(exist_ok=True)
    return Path(shutil.copyfile(home.other, elsewhere))


def evaluated(home: Home, ckpt: Path, *options: str) -> str:
    """The report of a checkpoint."""
    out = home.folder / "report"
    shutil.rmtree(out, ignore_errors=True)
    evaluate(composed("evaluate", f"ckpt={ckpt}", f"run_dir={out}", f"cache_dir={home.folder / 'cache'}", *options))
    return (out / "report.json").read_text()


@pytest.mark.parametrize("of_run", [True, False])
@pytest.mark.parametrize(
    "path",
    ["/proc/self/environ", "/proc/../proc/self/environ", "/sys/kernel/notes", "LINK", "LINK to a LINK", "PREFIX"],
)
def test_no_checkpoint_makes_a_report_of_the_system_s_files(
    path: str, of_run: bool, home: Home, tmp_path: Path
) -> None:
    """Fault: a checkpoint whose config names files of the host.

    Effect: files are read only from its run's folder, never from `/proc`, `/sys` or `/dev`.
    """
    for name in ("link", "link.en", "link.de"):
        (tmp_path / name).symlink_to("/proc/self/environ")
    (tmp_path / "link to a link").symlink_to("link")
    named = str(tmp_path / path.lower()) if path.startswith("LINK") else path
    files = str(tmp_path / "link") if path == "PREFIX" else [named, named]
    ckpt = outside(home, {"test": files, "src_lang": "en", "tgt_lang": "de"}, of_run=of_run)
    refused = "it is not a regular file" if of_run else "which was not read: only a checkpoint in"
    with pytest.raises(CorpusError, match=refused):
        evaluated(home, ckpt)


def test_only_the_checkpoint_of_a_run_chooses_files(home: Home) -> None:
    secret = home.folder / "secret.txt"
    secret.write_text("a secret\n" * 4)
    short = ("search=greedy", "search.max_length_factor=1")
    files = {"test": [str(secret)] * 2}
    assert "a secret" in evaluated(home, outside(home, files, of_run=True), *short)
    stranger = outside(home, files | {"train": files["test"]}, of_run=False)
    with pytest.raises(CorpusError, match="was not read"):
        evaluated(home, stranger, *short)
    text = f"test=[{home.folder / 'test.en'},{home.folder / 'test.de'}]"  # what the person names is read
    report = evaluated(home, stranger, *short, text)
    assert "a secret" not in report
    assert "which was not read" in report  # the training text, for overlaps


def test_no_address_comes_from_a_file(tmp_path: Path) -> None:
    """Fault: a checkpoint whose config names a server. Effect: the address is not used."""
    target = "softsearch.data.Multi30k"
    (tmp_path / "config.yaml").touch()
    for path in (tmp_path / "x.ckpt", tmp_path / "checkpoints" / "x.ckpt"):
        found = build_from_file(path, "data", {"_target_": target, "mirror": "http://localhost:1/"}, ParallelSource)
        assert found.mirror == UPSTREAM
        fetched = {"hub": "a/b", "revision": "0" * 40, "src": "en", "tgt": "de"}
        hub = {"_target_": "softsearch.data.HuggingFace", **fetched}
        with pytest.raises(CorpusError, match="was not read"):
            build_from_file(path, "data", hub, ParallelSource).files(tmp_path)
        inner = {"_target_": "softsearch.data.Multilingual", "src_lang": "en", "tgt_lang": "de"}
        nested = inner | {"pairs": {"de": {"_target_": target, "root": "/proc/1"}}}
        found = build_from_file(path, "data", nested, ParallelSource)
        with pytest.raises(CorpusError, match=r"was not read|/proc/1 has none of"):
            found.files(tmp_path)


DEEP = "[" * 10**5


@pytest.mark.parametrize("name", ["report.json", "metrics.json", "results.json"])
def test_compare_reads_no_bombs(name: str, tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text(json.dumps({"test/bleu": 3.0}))
    (tmp_path / name).write_text(DEEP)
    if name == "results.json":
        (tmp_path / "metrics.json").unlink()
    (run,) = read_runs([tmp_path], "test")
    assert "cannot be read: ValueError" in run.missing


def test_deep_json_is_an_error_of_its_reader(tmp_path: Path, home: Home) -> None:
    """Fault: JSON nested 100,000 levels deep. Effect: an error."""
    (tmp_path / "files.json").write_text(DEEP)
    for read in (read_tuned, read_report):
        with pytest.raises(ConfigError, match=r"cannot be read .*nested deeper than 64 levels"):
            read(tmp_path / "files.json")
    assert damage(tmp_path) == "files.json cannot be read"
    (tmp_path / "metrics.json").write_text(DEEP)
    assert read_metrics(tmp_path) == {}
    (tmp_path / "manifest.json").write_text(DEEP)
    with pytest.raises(BundleError, match="exists and is not a bundle"):
        write_bundle(tmp_path, *bundle_parts())
    with pytest.raises(ConfigError, match="cannot be read"):  # through a command
        evaluated(home, home.folder / "good/checkpoints/last.ckpt", f"against={tmp_path / 'files.json'}")
