"""The catalogs of examples/catalogs: trained on, exported, and filled in."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from softsearch import Translator, lab
from softsearch.extras.localise.checks import problems
from softsearch.extras.localise.opening import open_catalog
from softsearch.runtime.cli import main
from softsearch.runtime.glossary import Wanted
from softsearch.runtime.term_encoder import TermEncoder
from softsearch.text.keep import joined
from softsearch.text.symbols import own_symbols, spans_of

pytestmark = pytest.mark.day
SMALL = (
    *("model=nematus", "model.embeddings.dim=32", "model.encoder.hidden_dim=32", "model.decoder.hidden_dim=32"),
    *("model.decoder.attention.dim=32", "model.decoder.readout.dim=32", "tokenizer.vocab_size=250", "data.val=4"),
    *("data.test=null", "batching.tokens=512", "trainer.max_steps=20", "trainer.val_check_interval=20", "trainer=cpu"),
)


def test_a_model_of_two_languages_is_asked_for_the_catalogs_own(
    repo_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for code in ("de", "fr"):
        (tmp_path / code).mkdir()
        for path in (repo_root / "examples" / "catalogs" / "de").iterdir():
            text = path.read_text(encoding="utf-8").replace("Language: de", f"Language: {code}")
            (tmp_path / code / path.name).write_text(text, encoding="utf-8")
    run = lab.train(
        f"data.train={tmp_path}/{{de,fr}}/*.po",
        "data=catalogs",
        "data.memory=true",
        *SMALL,
        run_dir=tmp_path / "run",
        cache_dir=tmp_path / "cache",
    )
    lab.export(run, bundle := tmp_path / "bundle")
    assert Translator(bundle).system.tgt_lang == "de+fr"
    new = (repo_root / "examples" / "catalogs" / "new.po").read_text(encoding="utf-8")
    for code in ("de", "fr", "ja"):
        (tmp_path / f"new.{code}.po").write_text(new.replace("Language: de", f"Language: {code}"), encoding="utf-8")
    words = ["localise", str(bundle), str(tmp_path / "new.{de,fr}.po"), "--memory", str(tmp_path / "{de,fr}")]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.count("from the memory                    1") == 2
    assert "# softsearch: from dialog.po" in (tmp_path / "out" / "new.fr.po").read_text(encoding="utf-8")
    assert main(["localise", str(bundle), str(tmp_path / "new.ja.po"), "--dry-run"]) == 2
    assert "new.ja.po is a catalog of 'ja', expected 'de' or 'fr'; choose a bundle" in capsys.readouterr().err
    (unnamed := tmp_path / "new.po").write_text(new.replace('"Language: de\\n"\n', ""), encoding="utf-8")
    assert main(["localise", str(bundle), str(unnamed), "--dry-run"]) == 2
    assert "new.po names no language, expected 'de' or 'fr'; write it into" in capsys.readouterr().err
    words = ["localise", str(bundle), str(unnamed), "--memory", str(tmp_path / "{de,fr}"), "--dry-run", "--tgt"]
    assert main([*words, "fr"]) == 0
    assert "from the memory                    1" in capsys.readouterr().out
    assert main([*words, "ja"]) == 2
    assert "--tgt is 'ja', expected one of de, fr" in capsys.readouterr().err


@pytest.mark.parametrize("memory", [False, True])
def test_the_example_runs(repo_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], memory: bool) -> None:
    folder = repo_root / "examples" / "catalogs"
    run = lab.train(
        "data=catalogs",
        *SMALL,
        **{"data.train": str(folder / "de"), "data.memory": memory},
        run_dir=tmp_path / "run",
        cache_dir=tmp_path / "cache",
    )
    bundle, new, out = tmp_path / "bundle", folder / "new.po", tmp_path / "new.de.po"
    lab.export(run, bundle)
    sources = ["Open %1 in %2", "Open <b>%1</b>", "Delete %s, %s and %s"]
    translator = Translator(bundle)
    copied = Wanted(kept=tuple(joined("<1> of 5", own_symbols("<1> of 5"))))
    required = TermEncoder(tokenizer := translator.system.tokenizers[1], len(tokenizer.vocabulary())).require(copied)
    assert [(term.alternatives, term.exact) for term in required.terms.required] == [(("<1>",), True)]
    for source, found in zip(sources, translator.translate(sources, beam=2), strict=True):
        for span in {source[begin:end] for begin, end in spans_of(source)}:
            text = re.sub(r"%\d\$", "%", found.text)  # %s in another order has a number
            assert text.count(span) == source.count(span), found.text
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
            for pair in zip(sources, entry.targets, strict=True):
                assert problems(*pair, "_", may_number=entry.may_number) == []
    if msgfmt := shutil.which("msgfmt"):
        subprocess.run([msgfmt, "-c", "--check-format", "--use-fuzzy", "-o", tmp_path / "x.mo", out], check=True)
