"""Examples of Ray, on one machine: tasks translate as one translator does, and prepare what a process does."""

import gzip
import subprocess
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from pyarrow import parquet

from softsearch import Translator
from softsearch.app.config.composition import composed
from softsearch.app.config.options import Prepare
from softsearch.app.config.validation import read_options
from softsearch.app.prepare import prepare
from tests.support.commands import ROOT
from tests.support.pairs import write_pair
from tests.support.programs import run_python

pytestmark = [
    pytest.mark.day,
    pytest.mark.multiprocess,
    pytest.mark.nightly,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs softsearch[ray]"),
]
BUNDLE = ROOT / "tests" / "golden" / "bundle"
EXAMPLES = ROOT / "examples"
LOCAL_CLUSTER = """
import runpy, sys
import ray
ray.init(address="local", num_cpus=4, object_store_memory=80 << 20, include_dashboard=False)
for command in sys.argv[1:]:
    sys.argv = command.split()
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_on_ray(folder: Path, *commands: str) -> subprocess.CompletedProcess[str]:
    """Runs scripts with their options on a cluster of one machine."""
    with TemporaryDirectory(prefix="ray") as short:  # Ray's sockets are there, and their paths must be short
        ray = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": short}
        return run_python("-c", LOCAL_CLUSTER, *commands, cwd=folder, **ray)


def test_tasks_translate_text_and_parquet_leave_bad_lines_blank_and_skip_what_is_there(tmp_path: Path) -> None:
    sources = (ROOT / "tests" / "golden" / "sources.txt").read_text(encoding="utf-8").splitlines()
    texts = [f"{source} {number}" for number in range(3) for source in sources] + ["", "a\u2028b"]
    (tmp_path / "bad.txt").write_bytes(b"ten\n\xff\n")
    (tmp_path / "there.txt").write_text("ten\n")
    with gzip.open(tmp_path / "in.gz", "wt", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(texts) + "\n")
    long = "ten " * 20_000  # more than a line may have
    parquet.write_table(pa.table({"id": range(len(texts) + 1), "en": [*texts, long]}), tmp_path / "1.parquet")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "there.txt").write_text("as it was")
    command = f"{EXAMPLES / 'ray_data.py'} {BUNDLE} bad.txt there.txt in.gz 1.parquet out --column en --beam 2"
    first = run_on_ray(tmp_path, command)
    assert first.returncode == 1
    assert "2 files could not be translated" in first.stderr
    assert sorted(path.name for path in (tmp_path / "out").glob("[!.]*")) == ["in.gz", "there.txt"]
    assert "bad.txt:2:1 is not UTF-8" in first.stdout
    again = run_on_ray(tmp_path, f"{command} --on-error blank")
    assert again.returncode == 0, again.stderr[-3000:]
    assert "2 of 4 files are there" in again.stdout
    expected = [best.text for best in Translator(BUNDLE, threads=1).translate(texts, beam=2)]
    assert len({*expected}) > 10
    with gzip.open(tmp_path / "out" / "in.gz", "rt", encoding="utf-8", newline="\n") as file:
        assert file.read().split("\n") == [*expected, ""]
    assert (tmp_path / "out" / "bad.txt").read_text() == "zehn\n\n"
    assert (tmp_path / "out" / "there.txt").read_text() == "as it was"
    table = parquet.read_table(tmp_path / "out" / "1.parquet")
    assert table.column_names == ["id", "en", "de"]
    assert table.column("de").to_pylist() == [*expected, ""]


def test_tasks_prepare_the_same_bytes_and_name_a_broken_line(tmp_path: Path) -> None:
    files = [write_pair(tmp_path, f"train-{seed}", 3000, seed) for seed in range(3)]
    val = write_pair(tmp_path, "val", 20)
    broken = tmp_path / "broken.en"
    broken.write_bytes(files[0][0].read_bytes().replace(b"\n", b"\xff\n", 1))
    common = ["data=parallel", "data.src_lang=en", "data.tgt_lang=de", "data.filters.duplicates=true"]
    common += ["tokenizer.kind=char", f"data.val=[{val[0]},{val[1]}]"]
    options = [*common, f"data.train=[{','.join(f'[{src},{tgt}]' for src, tgt in files)}]"]
    script = f"{EXAMPLES / 'ray_prepare.py'} cache_dir={tmp_path / 'cluster'}"
    done = run_on_ray(
        tmp_path, " ".join([script, *options]), " ".join([script, *common, f"data.train=[{broken},{files[0][1]}]"])
    )
    assert (done.returncode, f"error: {broken}:1" in done.stderr) == (1, True), done.stderr[-3000:]
    prepare(
        read_options(
            composed("prepare", *options, "processes=1", "name=x", "run_dir=x", f"cache_dir={tmp_path / 'alone'}"),
            Prepare,
        )
    )
    found, expected = (contents(tmp_path / name) for name in ("cluster", "alone"))
    assert len(expected) > 30
    assert expected.items() <= found.items()


def contents(cache: Path) -> dict[str, bytes]:
    """What was prepared, by path."""
    paths = [path for folder in ("prepared", "parts") for path in (cache / folder).rglob("*") if path.is_file()]
    return {path.relative_to(cache).as_posix(): path.read_bytes() for path in paths}
