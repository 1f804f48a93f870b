"""The catalogs of examples/catalogs: trained on, exported, and filled in."""

import shutil
import subprocess
from pathlib import Path

import pytest

from softsearch import lab
from softsearch.extras.localise.catalog import open_catalog
from softsearch.extras.localise.checks import problems
from softsearch.runtime.cli import main

pytestmark = pytest.mark.day
SMALL = (
    *("model=nematus", "model.embeddings.dim=32", "model.encoder.hidden_dim=32", "model.decoder.hidden_dim=32"),
    *("model.decoder.attention.dim=32", "model.decoder.readout.dim=32", "tokenizer.vocab_size=250", "data.val=4"),
    *("data.test=null", "batching.tokens=512", "trainer.max_steps=20", "trainer.val_check_interval=20", "trainer=cpu"),
)


def test_the_example_runs(repo_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = repo_root / "examples" / "catalogs"
    run = lab.train(
        "data=catalogs",
        *SMALL,
        **{"data.train": str(folder / "de")},
        run_dir=tmp_path / "run",
        cache_dir=tmp_path / "cache",
    )
    bundle, new, out = tmp_path / "bundle", folder / "new.po", tmp_path / "new.de.po"
    lab.export(run, bundle)
    assert main(["localise", str(bundle), str(new), "--memory", str(folder / "de" / "*.po"), "--out", str(out)]) == 0
    assert "from the memory                    1" in capsys.readouterr().out
    before, after = (list(open_catalog(path).entries) for path in (new, out))
    assert {entry.sources[0]: entry.targets for entry in after}["Delete file"] == ("Datei löschen",)
    for old, entry in zip(before, after, strict=True):
        if old.state == "translated":
            assert (entry.targets, entry.state) == (old.targets, old.state)
        elif all(entry.targets):
            assert entry.state == "fuzzy"
            sources = [entry.sources[number] for number in entry.needed()]
            assert [problems(*pair, "_") for pair in zip(sources, entry.targets, strict=True)] == [[]] * len(sources)
    if msgfmt := shutil.which("msgfmt"):
        subprocess.run([msgfmt, "-c", "--check-format", "-o", tmp_path / "x.mo", out], check=True)
