"""`make demo` from end to end, and what the documentation shows of its model."""

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from pathlib import Path

import pytest
from PIL import Image

from softsearch.app.demo import BUNDLE, LINES, RUN
from softsearch.runtime.translator import Translator
from tests.pictures import NAMES, draw
from tests.support.commands import ROOT
from tests.support.documented import PAGES, ask, python_blocks, requests
from tests.support.serving import serving

pytestmark = pytest.mark.day

TRANSLATIONS = (
    "donnerstag der siebte oktober neunzehnhundertfünfundsechzig um fünf uhr siebzehn morgens",
    "vor einundzwanzig jahren um zehn uhr einundfünfzig vormittags",
    "dreihundertfünfundvierzig pfund und achtundneunzig pence",
    "sechshundertneunundvierzigste oder dreiundzwanzigste",
    "eins zwei drei",
    "zehn",
)
SHORT = {
    "monday": "montag", "may": "mai", "march": "märz", "one": "eins", "twenty-one": "einundzwanzig", "twelve": "zwölf",
    "forty": "vierzig", "eighty": "achtzig", "tenth": "zehnte", "dollars": "dollar",
}  # fmt: skip


@pytest.mark.nightly
@pytest.mark.timeout(900)
class TestTrained:
    @pytest.fixture(scope="class")
    @staticmethod
    def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
        """Where the demo has run; its output is in ``stdout``."""
        folder = tmp_path_factory.mktemp("demo")
        with (folder / "stdout").open("w") as output:
            done = subprocess.run([sys.executable, "-m", "softsearch", "demo"], cwd=folder, stdout=output,
                                  stderr=subprocess.PIPE, text=True, check=False, timeout=900)  # fmt: skip
        assert done.returncode == 0, (folder / "stdout").read_text()[-3000:] + done.stderr[-3000:]
        return folder

    def test_it_reaches_its_goal(self, folder: Path) -> None:
        metrics = json.loads((folder / RUN / "evaluate" / "metrics.json").read_text())
        page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
        shown = re.search(r"`make demo` writes ([\d.]+) % .* alignment error rate of ([\d.]+) %", page)
        assert shown is not None
        for key, value, margin in zip(("exact_match", "aer"), shown.groups(), (0.01, 0.03), strict=True):
            assert metrics[f"test/{key}"] == pytest.approx(float(value) / 100, abs=margin)  # machines round differently
        report = (folder / RUN / "evaluate" / "report.html").read_text(encoding="utf-8")
        assert '<table class="heatmap">' in report

    def test_the_tutorial_shows_its_attention(self, folder: Path, tmp_path: Path) -> None:
        """Drawn again by ``make pictures``; the words stand beside the picture."""
        src, tgt = draw(folder, tmp_path)
        tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
        assert f"![Attention of the demo model: {' '.join(tgt[:-1])}](alignments.png)" in tutorial
        assert src[0] in ("friday", "friday,")
        for name in NAMES:
            with Image.open(ROOT / "docs" / name) as shown, Image.open(tmp_path / name) as drawn:
                assert max(abs(a - b) for a, b in zip(shown.size, drawn.size, strict=True)) <= 40  # other fonts

    def test_it_translates_its_examples_and_single_words(self, folder: Path) -> None:
        expected = dict(zip(LINES, TRANSLATIONS, strict=True)) | SHORT
        translations = Translator(folder / BUNDLE).translate([*expected])
        assert dict(zip(expected, (each.text for each in translations), strict=True)) == expected

    def test_its_last_command_writes_the_page(self, folder: Path) -> None:
        program, *site = shlex.split((folder / "stdout").read_text().rpartition("\n$ ")[2])
        assert program.endswith("softsearch")
        command = [sys.executable, "-m", "softsearch", *site]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0 or "the page is not built" in done.stderr, done.stderr

    @pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
    def test_it_answers_the_requests_of_the_documentation_as_documented(self, folder: Path) -> None:
        with serving(folder / BUNDLE) as served:
            for command, texts in requests("docs/server.md"):
                answer = ask(served.url, command)
                assert [text for text in texts if json.dumps(text, ensure_ascii=False) not in answer] == [], answer

    @pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)])
    def test_the_python_of_the_documentation_prints_what_it_says(self, folder: Path, page: str) -> None:
        for block in python_blocks(page):
            with chdir(folder), redirect_stdout(io.StringIO()) as output:
                exec(block, {})
            printing = [line for line in block.splitlines() if "print(" in line and "  # " in line]
            expected = [line.partition("  # ")[2] for line in printing]
            assert [text for text in expected if text not in output.getvalue()] == []
