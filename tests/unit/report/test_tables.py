"""Tables as Markdown and LaTeX: any text, numbers on the right."""

import re
from pathlib import Path

import pytest

from softsearch.errors import ConfigError
from softsearch.report.tables import Table, check_table_name, write_tables

TABLE = Table(
    ("no.", "run", "BLEU", "tokens/s"),
    [("1*", "a_b|c\nd", "41.9 (40 to 43)", "12,100"), ("2", "_x_ & 50 % of $5 <i> \\#", "-1.5", "")],
    "test_2016: best first, * on the front",
)
MARKDOWN = r"""test_2016: best first, \* on the front

| no. | run | BLEU | tokens/s |
| ---: | --- | ---: | ---: |
| 1\* | a_b\|c d | 41.9 (40 to 43) | 12,100 |
| 2 | \_x\_ & 50 % of $5 \<i> \\# | -1.5 |  |
"""
LATEX = r"""\begin{table}
\centering
\caption{test\_2016: best first, * on the front}
\begin{tabular}{rlrr}
\hline
no. & run & BLEU & tokens/s \\
\hline
1* & a\_b\textbar{}c d & 41.9 (40 to 43) & 12,100 \\
2 & \_x\_ \& 50 \% of \$5 \textless{}i\textgreater{} \textbackslash{}\# & $-$1.5 &  \\
\hline
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


def test_another_format_is_refused() -> None:
    check_table_name(None)
    with pytest.raises(
        ConfigError, match=r"table is t\.csv, expected a name that ends with \.md or \.tex; change table"
    ):
        check_table_name(Path("t.csv"))
