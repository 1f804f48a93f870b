"""Tables as Markdown and LaTeX: any text, numbers on the right."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from softsearch.errors import ConfigError
from softsearch.evaluation.schema import MetricFacts
from softsearch.report.tables import Table, best_cells, check_table_name, write_tables

FACTS = {"bleu": MetricFacts("BLEU"), "ter": MetricFacts("TER", higher_is_better=False), "n": MetricFacts("n", None)}
TABLE = Table(
    ("no.", "run", "BLEU", "tokens/s"),
    [("1*", "a_b|c\nd", "41.9 (40 to 43)", "12,100"), ("2", "_x_ & 50 % of $5 <i> \\#", "-1.5", "")],
    "test_2016: best first, * on the front",
    best=frozenset({(0, 2)}),
)
MARKDOWN = r"""test_2016: best first, \* on the front

| no. | run | BLEU | tokens/s |
| ---: | --- | ---: | ---: |
| 1\* | a_b\|c d | **41.9 (40 to 43)** | 12,100 |
| 2 | \_x\_ & 50 % of $5 \<i> \\# | -1.5 |  |
"""
LATEX = r"""% \usepackage{booktabs}
\begin{table}
\centering
\caption{test\_2016: best first, * on the front}
\begin{tabular}{rlrr}
\toprule
no. & run & BLEU & tokens/s \\
\midrule
1* & a\_b\textbar{}c d & \textbf{41.9 (40 to 43)} & 12,100 \\
2 & \_x\_ \& 50 \% of \$5 \textless{}i\textgreater{} \textbackslash{}\# & $-$1.5 &  \\
\bottomrule
\end{tabular}
\end{table}
"""


@pytest.mark.parametrize(("name", "expected"), [("new/t.md", MARKDOWN), ("t.TEX", LATEX)])
def test_a_table_is_written_as_its_name_ends(name: str, expected: str, tmp_path: Path) -> None:
    write_tables(tmp_path / name, [TABLE, TABLE])
    assert (tmp_path / name).read_text(encoding="utf-8") == f"{expected}\n{expected}"


def test_markdown_shows_the_text_as_it_is(tmp_path: Path) -> None:
    """A reader of GitHub's Markdown undoes backslashes, and splits at pipes without a backslash."""
    evil = ["**a**", "`b`", "[c](d)", "&lt;", "<b>", "x|y", "\\|", "*", "1\\*"]
    write_tables(tmp_path / "t.md", [Table(["run"], [[text] for text in evil])])
    lines = (tmp_path / "t.md").read_text(encoding="utf-8").splitlines()[2:]
    cells = [re.split(r"(?<!\\)(?:\\\\)*\|", line)[1].strip() for line in lines]
    assert [re.sub(r"\\([^\w\s])", r"\1", cell) for cell in cells] == evil


@pytest.mark.parametrize(
    ("text", "expected"),
    [("[1]", "{}[1]"), ("*", "{}*"), ('a "b"', "a ''b''"), ("~^", r"\textasciitilde{}\textasciicircum{}")],
)
def test_latex_reads_the_text_as_text(text: str, expected: str, tmp_path: Path) -> None:
    """A bracket or a star after a line break is an argument of it, and fonts of OT1 have no straight quotes."""
    write_tables(tmp_path / "t.tex", [Table(["run"], [["a"], [text]])])
    assert (tmp_path / "t.tex").read_text(encoding="utf-8").splitlines()[-4] == rf"{expected} \\"


def test_the_best_cells_are_those_that_look_best() -> None:
    scores: dict[str, list[float | None]] = {
        "bleu": [41.004, 41.0, None, 39.0],
        "ter": [50.0, 40.0, 45.0, None],
        "n": [1.0, 2.0, 3.0, 4.0],
    }
    assert best_cells(scores, FACTS, first_column=1) == {(0, 1), (1, 1), (1, 2)}
    assert best_cells(scores, FACTS, first_column=1, digits=3) == {(0, 1), (1, 2)}
    assert best_cells({"bleu": [41.0], "ter": [None]}, FACTS, first_column=1) == frozenset()


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="LaTeX is not installed")
def test_latex_compiles_any_text(tmp_path: Path) -> None:
    cells = [
        ["[1]", "41.9 ± 0.3"],
        ["*", "-1.5"],
        ["a_b & 50 % of $5 <i> \\# {x} ~ ^ | \"q\" 'é' ü", ""],
        ["\u2212", "1"],
    ]
    write_tables(
        tmp_path / "t.tex", [Table(["run", "BLEU"], cells, "a_b: 100 %", best=frozenset({(0, 1), (2, 0)}))] * 2
    )
    text = (tmp_path / "t.tex").read_text(encoding="utf-8")
    paper = f"\\documentclass{{article}}\n\\usepackage{{booktabs}}\n\\begin{{document}}\n{text}\\end{{document}}\n"
    (tmp_path / "paper.tex").write_text(paper, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 0


def test_another_format_is_refused() -> None:
    check_table_name(None)
    with pytest.raises(
        ConfigError, match=r"table is t\.csv, expected a name that ends with \.md or \.tex; change table"
    ):
        check_table_name(Path("t.csv"))
