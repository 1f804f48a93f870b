"""Translation at a prompt: replies, commands that change the search, and mistakes that end nothing."""

import re
from pathlib import Path
from typing import Any

import pytest

from softsearch.runtime.prompt import Prompt
from softsearch.runtime.translator import Translator
from tests.support.serving import BUNDLE
from tests.support.terminal import at_terminal


def talk(*lines: str, **options: Any) -> list[str]:
    typed, written = iter([*lines, ":quit"]), list[str]()
    Prompt(Translator(BUNDLE), {"search": "beam"} | options, read=lambda _: next(typed), write=written.append).run()
    return written[1:]  # without the hint


def test_a_reply_is_what_translate_says() -> None:
    translator = Translator(BUNDLE)
    expected = [translator.translate(["ten"], **options)[0].text for options in ({}, {"beam": 1, "max_length": 2})]
    found = talk("ten", "", ":beam 1", ":max-length 2", "ten", ":reset", "ten", "quit", "never")
    assert found.pop(4) == "(cut off at the length limit: put one sentence on each line, or raise :max-length)"
    assert found == [expected[0], "beam 1", "max-length 2", expected[1], "options reset", expected[0]]
    best = translator.translate(["ten"], n_best=2, search="beam")[0].n_best
    assert talk(":n-best 2", "ten")[1:] == [f"{n}. {one.text}  ({one.score:.3f})" for n, one in enumerate(best, 1)]


def test_a_trace_marks_the_source_for_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    said, _, *rows, end = talk(":trace", "ten", ":trace")
    assert (said, end) == ("trace on", "trace off")
    (best,) = Translator(BUNDLE).translate(["ten"], alignments=True)
    assert best.alignments is not None
    pieces = [piece for piece in best.tgt_pieces if piece != "</s>"]
    assert [row.split()[0] for row in rows if "|" in row] == pieces
    for row, weights in zip(rows, best.alignments, strict=False):
        shown = {piece: int(share) for piece, share in re.findall(r"(\S+)\((\d+)%\)", row)}
        assert shown == {p: round(100 * w) for p, w in zip(best.src_pieces, weights, strict=True) if w >= 0.05}
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[30;48;5;220m" in "".join(talk(":trace", "ten"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (":bem 3", "there is no option :bem; did you mean :beam?"),
        (":beam x", "'x' is not a whole number"),
        (":beam", "expected one argument"),
        (":temperature 0.5", "temperature"),
        (":n-best 50", "n-best"),
        (":'", "No closing quotation"),
        (":threads 2", "start again with softsearch translate --threads"),
    ],
)
def test_a_mistake_is_answered_and_changes_nothing(line: str, message: str) -> None:
    before, (error, after) = talk("ten"), talk(line, "ten")
    assert error.startswith("error: ")
    assert message in error
    assert [after] == before


def test_a_line_of_another_encoding_ends_nothing() -> None:
    lines = iter([b"\xe4", b":quit"])
    written: list[str] = []
    Prompt(Translator(BUNDLE), {}, read=lambda _: next(lines).decode(), write=written.append).run()
    assert written[1:] == ["error: the line is not UTF-8; set the terminal to it"]


def test_a_terminal_without_input_gets_a_prompt_and_ctrl_d_leaves(tmp_path: Path) -> None:
    pytest.importorskip("pty")
    code, screen = at_terminal(["translate", BUNDLE.resolve()], ["twenty-one years ago", ":beam 2"], cwd=tmp_path)
    assert code == 0, screen
    assert screen.startswith("One sentence per line. :help lists commands; :quit or Ctrl-D leaves.\n> ")
    assert "\neinundzwanzig jahren\n> :beam 2\nbeam 2\n> \n" in screen
