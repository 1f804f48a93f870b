"""``softsearch bench`` prints throughput, latency, memory and loading time."""

import re
from pathlib import Path

import pytest

from softsearch.machine import peak_memory
from softsearch.runtime.cli import main


def test_it_prints_what_it_measured(bundle_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text("one two\n\nthree\n" * 5)
    assert main(["bench", str(bundle_dir), str(tmp_path / "in.txt"), "--beam", "2", "--threads", "1"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^load and first sentence  \d+\.\d\d s$", out, re.MULTILINE)
    assert re.search(r"^10 in batches +[\d,]+ sentences/s, [\d,]+ target tokens/s \(", out, re.MULTILINE)
    assert re.search(r"^10 one by one +median [\d.]+ ms, 90 % within [\d.]+ ms, 99 % within", out, re.MULTILINE)
    assert bool(re.search(r"^peak memory +[\d,]+ MiB$", out, re.MULTILINE)) == (peak_memory() > 0)


@pytest.mark.parametrize(("text", "message"), [("\n \n", "has only blank lines"), (None, "does not exist")])
def test_text_that_is_missing(
    bundle_dir: Path, tmp_path: Path, text: str | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / "in.txt").write_text(text)
    assert main(["bench", str(bundle_dir), str(tmp_path / "in.txt")]) == 1
    assert message in capsys.readouterr().err
