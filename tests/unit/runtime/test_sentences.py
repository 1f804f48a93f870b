"""Sentences of a line are counted alike by Python and the page, and translations that lack some say so."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from softsearch.runtime.bundle import Bundle
from softsearch.runtime.cli import main
from softsearch.runtime.translation import count_sentences
from softsearch.runtime.translator import Translator

COUNTS = {
    "A man sleeps. A dog barks.": 2,
    "a man sleeps . a dog barks .": 2,
    "a man sleeps. a dog barks": 2,
    "Really? Yes! He left\u2026 She came...  Good.": 5,
    'He left. "Stop!" she said.': 2,
    "Das war ein Traum.\u00bb Er ging. (Dann kam sie.) Alle lachten.": 4,
    "I saw the cat. It ran.": 2,
    "Он спит. Она читает.": 2,
    "\u5f7c\u306f\u5bdd\u308b\u3002\u72ac\u304c\u5420\u3048\u308b\u3002": 2,
    "\u300c\u672c\u5f53\uff1f\u300d \u3068\u8a00\u3063\u305f \u3002": 2,
    "": 1,
    "A man sleeps.": 1,
    "No..! A dog?!! ...? Yes": 4,
    "Mr. Smith and Mrs. Jones met Dr. No.": 1,
    "Hunde, z. B. Dackel, und d. h. Tiere.": 1,
    "It is 3.5 m. long, see fig. 3.": 1,
    "The U.S. Army came to St. Louis on Jan. 5.": 1,
    "Am 5. Oktober kam er.": 1,
    "Wait... what?": 1,
    '"Stop!" he said.': 1,
    "a sign says &quot; stop . &quot;": 1,
}


def test_abbreviations_and_numbers_end_no_sentence() -> None:
    assert {text: count_sentences(text) for text in COUNTS} == COUNTS


def test_rows_of_marks_take_no_minutes() -> None:
    assert [count_sentences(mark * 200_000) for mark in ("!", "?.", "! ")] == [1, 1, 200_000]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_the_page_counts_alike(repo_root: Path) -> None:
    module = (repo_root / "src" / "web" / "worker" / "sentences.js").as_uri()
    script = (
        f"import {{ countSentences }} from {json.dumps(module)};"
        f"console.log(JSON.stringify({json.dumps(list(COUNTS))}.map(countSentences)));"
    )
    command = ["node", "--input-type=module", "--eval", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert dict(zip(COUNTS, json.loads(done.stdout), strict=True)) == COUNTS


def test_a_translation_with_fewer_sentences_says_so(
    bundle_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["one two", "seven eight . nine ten .", "one", "", "four five . six ."]
    found = Translator(Bundle.open(bundle_dir)).translate(lines, max_length=1)
    assert [each.fewer_sentences for each in found] == [False, True, False, False, True]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines))
    assert main(["translate", str(bundle_dir), "--max-length", "1", "--input", str(tmp_path / "in")]) == 0
    assert capsys.readouterr().err == (
        "softsearch: 2 translations have fewer sentences than their lines, the first in line 2; "
        "put one sentence on each line, or give --paragraphs\n"
    )
