"""examples/ray_data.py translates as one translator does, with two actors on one machine."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from pyarrow import parquet

from softsearch import Translator
from tests.integration.commands import ROOT
from tests.programs import run_python

pytestmark = [pytest.mark.multiprocess, pytest.mark.nightly]
BUNDLE = ROOT / "tests" / "golden" / "bundle"
LOCAL_CLUSTER = """
import runpy, sys
import ray
ray.init(address="local", num_cpus=4, object_store_memory=80 << 20, include_dashboard=False)
script, *runs = sys.argv[1:]
for run in runs:
    sys.argv = [script, *run.split()]
    runpy.run_path(script, run_name="__main__")
"""


def test_two_actors_translate_text_and_parquet(tmp_path: Path) -> None:
    sources = (ROOT / "tests" / "golden" / "sources.txt").read_text(encoding="utf-8").splitlines()
    texts = [f"{source} {number}" for number in range(12) for source in sources] + ["", "a\u2028b"]
    (tmp_path / "in.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    half = len(texts) // 2
    for name, part in {"1": slice(half), "2": slice(half, None)}.items():
        table = pa.table({"id": range(len(texts))[part], "en": texts[part]})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    common = "--actors 2 --batch 16 --beam 2"
    runs = f"{BUNDLE} in.txt out.txt {common}", f"{BUNDLE} 1.parquet 2.parquet out --column en {common}"
    with TemporaryDirectory(prefix="ray") as short:  # Ray's sockets are there, and their paths must be short
        ray = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": short}
        done = run_python("-c", LOCAL_CLUSTER, ROOT / "examples" / "ray_data.py", *runs, cwd=tmp_path, **ray)
    assert done.returncode == 0, done.stderr[-3000:]
    expected = [best.text for best in Translator(BUNDLE, threads=1).translate(texts, beam=2)]
    assert len({*expected}) > 10
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").split("\n") == [*expected, ""]
    table = parquet.read_table(tmp_path / "out")
    assert table.column_names == ["id", "en", "translation"]
    assert table.column("translation").to_pylist() == expected
