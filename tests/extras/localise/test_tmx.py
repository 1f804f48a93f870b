"""Translation memories as OmegaT and others write them."""

from pathlib import Path

import pytest

from softsearch.errors import ConfigError, CorpusError
from softsearch.extras.localise.memory import memories_of
from softsearch.extras.localise.opening import open_catalog
from softsearch.runtime.cli import main

BUNDLE = "tests/golden/bundle"
SAVE = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<!DOCTYPE tmx SYSTEM "tmx11.dtd">
<tmx version="1.1">
  <header creationtool="OmegaT" o-tmf="OmegaT TMX" adminlang="EN-US" datatype="plaintext" srclang="EN-US"/>
  <body>
<!-- Default translations -->
    <tu>
      <tuv lang="EN-US"><seg>Open &lt;b0&gt;all&lt;/b0&gt; files</seg></tuv>
      <tuv lang="DE-DE" changeid="anna"><seg>&lt;b0&gt;Alle&lt;/b0&gt; Dateien öffnen</seg></tuv>
    </tu>
    <tu>
      <tuv lang="EN-US"><seg>two</seg></tuv>
      <tuv lang="DE-DE"><seg>Zwei</seg></tuv>
    </tu>
<!-- Alternative translations -->
    <tu>
      <prop type="file">menu.po</prop>
      <tuv lang="EN-US"><seg>two</seg></tuv>
      <tuv lang="DE-DE"><seg>Beide</seg></tuv>
    </tu>
    <tu>
      <tuv lang="EN-US"><seg>not yet</seg></tuv>
      <tuv lang="DE-DE"><seg></seg></tuv>
    </tu>
  </body>
</tmx>
"""
LEVEL_2 = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4">
  <header creationtool="OmegaT" adminlang="EN-US" datatype="plaintext" segtype="sentence" srclang="en-US"/>
  <body>
    <tu>
      <tuv xml:lang="DE-DE"><seg><bpt i="0" x="0">&lt;b0&gt;</bpt>Alle<ept i="0">&lt;/b0&gt;</ept> Dateien</seg></tuv>
      <tuv xml:lang="EN-US"><seg><bpt i="0" x="0">&lt;b0&gt;</bpt>All<ept i="0">&lt;/b0&gt;</ept> files</seg></tuv>
      <tuv xml:lang="FR"><seg>Tous</seg></tuv>
    </tu>
    <tu>
      <tuv xml:lang="EN-US"><seg>Line<ph x="1">&lt;br0/&gt;</ph>height</seg></tuv>
      <tuv xml:lang="DE-DE"><seg>Zeilen<ph x="1">&lt;br0/&gt;</ph>höhe</seg></tuv>
    </tu>
  </body>
</tmx>
"""


@pytest.mark.parametrize(
    ("content", "pairs"),
    [
        (SAVE, [("Open <b0>all</b0> files", "<b0>Alle</b0> Dateien öffnen"), ("two", "Zwei"), ("two", "Beide")]),
        (LEVEL_2, [("<b0>All</b0> files", "<b0>Alle</b0> Dateien"), ("Line<br0/>height", "Zeilen<br0/>höhe")]),
        (
            LEVEL_2.replace("<tmx", '<tmx xmlns="http://www.lisa.org/tmx14"').replace(
                'srclang="en-US"', 'srclang="EN"'
            ),
            [("<b0>All</b0> files", "<b0>Alle</b0> Dateien"), ("Line<br0/>height", "Zeilen<br0/>höhe")],
        ),
    ],
)
def test_a_memory_is_read_as_it_is(tmp_path: Path, content: str, pairs: list[tuple[str, str]]) -> None:
    (tmp_path / "x.tmx").write_text(content)
    memory = open_catalog(tmp_path / "x.tmx")
    assert (memory.src_lang, memory.tgt_lang) == ("en-US", "de-DE")
    assert memory.pairs() == pairs


def test_where_any_language_is_the_source_the_first_is(tmp_path: Path) -> None:
    (tmp_path / "x.tmx").write_text(SAVE.replace('srclang="EN-US"', 'srclang="*all*"'))
    assert open_catalog(tmp_path / "x.tmx").pairs()[1] == ("two", "Zwei")


def test_a_memory_of_omegat_has_precedence_in_the_command(
    tmp_path: Path, repo_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "project_save.tmx").write_text(SAVE)
    (tmp_path / "x.po").write_text('msgid ""\nmsgstr "Language: de"\n\nmsgid "two"\nmsgstr ""\n')
    (tmp_path / "glossary.txt").write_text("# Glossary in tab-separated format\ntwo\tzwei\tthe number\n")
    options = ["--memory", str(tmp_path / "*.tmx"), "--glossary", str(tmp_path / "glossary.txt")]
    out = ["--out", str(tmp_path / "y.po")]
    assert main(["localise", str(repo_root / BUNDLE), str(tmp_path / "x.po"), *options, *out]) == 0
    assert "from the memory                    1" in capsys.readouterr().out
    assert 'msgstr "Zwei"' in (tmp_path / "y.po").read_text()


def test_a_memory_of_another_language_or_a_damaged_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.tmx").write_text(SAVE)
    with pytest.raises(ConfigError, match=r"x\.tmx is a catalog of 'de-DE', expected 'fr'; leave it out of --memory"):
        memories_of([tmp_path / "x.tmx"], ["fr"])
    for content, message in ((SAVE[:-30], "cannot be read"), ('<!DOCTYPE t [<!ENTITY a "b">]><tmx/>', "entities")):
        (tmp_path / "x.tmx").write_text(content)
        with pytest.raises(CorpusError, match=message):
            open_catalog(tmp_path / "x.tmx")
