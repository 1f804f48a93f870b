"""Examples of Ray, on one machine: two actors translate as one translator does, tasks prepare what a process does."""

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


def test_two_actors_translate_text_and_parquet(tmp_path: Path) -> None:
    sources = (ROOT / "tests" / "golden" / "sources.txt").read_text(encoding="utf-8").splitlines()
    texts = [f"{source} {number}" for number in range(12) for source in sources] + ["", "a\u2028b"]
    (tmp_path / "in.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    half = len(texts) // 2
    for name, part in {"1": slice(half), "2": slice(half, None)}.items():
        table = pa.table({"id": range(len(texts))[part], "en": texts[part]})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    common = "--actors 2 --batch 16 --beam 2"
    script = EXAMPLES / "ray_data.py"
    done = run_on_ray(
        tmp_path,
        f"{script} {BUNDLE} in.txt out.txt {common}",
        f"{script} {BUNDLE} 1.parquet 2.parquet out --column en {common}",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    expected = [best.text for best in Translator(BUNDLE, threads=1).translate(texts, beam=2)]
    assert len({*expected}) > 10
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").split("\n") == [*expected, ""]
    table = parquet.read_table(tmp_path / "out")
    assert table.column_names == ["id", "en", "translation"]
    assert table.column("translation").to_pylist() == expected


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
