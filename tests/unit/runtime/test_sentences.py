"""Sentences of a line are counted alike by Python and the page, and translations that lack some say so."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from softsearch.runtime.bundle import Bundle
from softsearch.runtime.cli import main
from softsearch.runtime.sentences import count_sentences
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
    "Click OK. The file is saved.": 2,
    "I am. You are.": 2,
    "He said \u201cno\u201d. She left.": 2,
    "Watch TV. Then go. It is on. Do so. We do.": 5,
    "It weighs 5 kg. It costs 5 EUR. We won 3:2. Press F5. Open a.txt. Run it.": 6,
    "J. R. R. Tolkien and Prof. A.-B. Smith (cf. Smith et al. In Nature), e.g. This, vs. Germany.": 1,
    "Hr. M\u00fcller, geb. Meier, inkl. Kinder, bzw. Eltern, evtl. Freunde.": 1,
    "M. Dupont et Mme. Durand et le Sr. Garc\u00eda.": 1,
    "prof. smith and mr. jones sleep. a dog barks.": 2,
    "\u0410. \u0421. \u041f\u0443\u0448\u043a\u0438\u043d, \u0443\u043b. \u041b\u0435\u043d\u0430. \u041e\u043d.": 2,
    "\u0935\u0939 \u0938\u094b\u0924\u093e \u0939\u0948\u0964 \u092e\u0948\u0902\u0964": 2,
    "\u72ac\u304c\u5420\u3048\u308b\u3002\u3002\u3002": 1,
}


OF_LANGUAGES = {
    ("See chapter 2. The next is longer.", "en"): 2,
    ("See chapter 2. The next is longer.", "en-GB"): 2,
    ("See chapter 2. The next is longer.", None): 2,
    ("I saw him in 1999. He was old.", "de"): 2,
    ("Am 5. Oktober kam er.", "de-AT"): 1,
    ("Am 5. Oktober kam er.", ""): 1,
    ("Kaiser Karl IV. Und dann?", "de"): 1,
    ("Elizabeth II. The queen.", "en"): 2,
    ("Le 5 mai 2020. Il est l\u00e0.", "fr"): 2,
    ("1. Introduction", "en"): 1,
    ("Bien s\u00fbr. Il va.", "fr"): 2,
}


def test_abbreviations_and_numbers_end_no_sentence() -> None:
    assert {text: count_sentences(text, "") for text in COUNTS} == COUNTS
    assert {case: count_sentences(*case) for case in OF_LANGUAGES} == OF_LANGUAGES


def test_rows_of_marks_take_no_minutes() -> None:
    texts = (mark * 50_000 for mark in ("!", "?.", "! ", "\u3002", ". ", '"', '." ', "A. ", "\u3002\u300d"))
    assert [count_sentences(text) for text in texts] == [1, 1, 50_000, 1, 50_000, 1, 50_000, 1, 1]
    assert count_sentences("a." + " " * 50_000) == 1


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_the_page_counts_alike(repo_root: Path) -> None:
    cases = [*((text, "") for text in COUNTS), *OF_LANGUAGES]
    module = (repo_root / "src" / "web" / "worker" / "sentences.js").as_uri()
    script = (
        f"import {{ countSentences }} from {json.dumps(module)};"
        f"console.log(JSON.stringify({json.dumps(cases)}.map((each) => countSentences(...each))));"
    )
    command = ["node", "--input-type=module", "--eval", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [*COUNTS.values(), *OF_LANGUAGES.values()]


def test_a_translation_with_fewer_sentences_says_so(
    bundle_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fault: two sentences in one line. Effect: a warning, and a flag in the answer, if the translation has fewer."""
    lines = ["one two", "seven eight . nine ten .", "one", "", "four five . six ."]
    found = Translator(Bundle.open(bundle_dir)).translate(lines, max_length=1)
    assert [each.fewer_sentences for each in found] == [False, True, False, False, True]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines))
    assert main(["translate", str(bundle_dir), "--max-length", "1", "--input", str(tmp_path / "in")]) == 0
    assert capsys.readouterr().err.endswith(
        "softsearch: 2 translations have fewer sentences than their lines, the first in line 2; "
        "put one sentence on each line, or give --paragraphs\n"
    )
