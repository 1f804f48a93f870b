"""Any text is translated line by line, and what is no text is an error that says where."""

import math
import re
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsearch import InputError, Translator
from softsearch.runtime.cli import main
from softsearch.text.corpus import is_blank
from tests.support.bundles import make_bundle

GOLDEN = Path(__file__).parents[2] / "golden" / "bundle"
WORDS = [
    "one",
    "two cats",
    "twenty-one",
    "ten.",
    "\u2581",
    "</s>",
    "\ufeff",
    "\u202e",
    "e\u0301" * 3,
    "\U0001f468\u200d\U0001f467",
]
ENDS = "\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # what str.splitlines takes for the end of a line
BLANKS = st.text(st.characters(categories=["Cc", "Cf", "Zs", "Zl", "Zp"]), max_size=8)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LINE = st.lists(st.sampled_from(WORDS) | st.sampled_from(ENDS) | TEXT, max_size=5).map(" ".join) | BLANKS
LINES = st.lists(LINE, max_size=5)


@pytest.fixture(scope="module", params=["subwords", "words"])
def translator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """A trained model of subwords, or a small one of words, whose unknown words are copied from the source."""
    words = request.param == "words"
    bundle = make_bundle(tmp_path_factory.mktemp("words") / "b", words=True).path if words else GOLDEN
    made = Translator(bundle, threads=1)
    translate = made.translate
    made.translate = lambda lines, **options: translate(lines, replace_unknown=words, **options)  # type: ignore[method-assign]
    return made


@settings(max_examples=60)
@given(lines=LINES)
def test_any_lines_give_one_line_each_alone_and_together(translator: Translator, lines: list[str]) -> None:
    together = translator.translate(lines, n_best=2, beam=3)
    assert len(together) == len(lines)
    for line, best in zip(lines, together, strict=True):
        if is_blank(line):
            assert best.text == ""
        for found in best.n_best:
            assert "\n" not in found.text
            assert "\r" not in found.text
            assert found.text.encode().decode() == found.text
            assert math.isfinite(found.score)
            assert math.isfinite(found.log_prob)
        (alone,) = translator.translate([line], n_best=2, beam=3)
        assert [found.text for found in alone.n_best] == [found.text for found in best.n_best]
        assert alone.score == pytest.approx(best.score, abs=1e-4)


@settings(max_examples=40)
@given(before=LINES, line=LINE, place=st.integers(0, 60), surrogate=st.characters(categories=["Cs"]), after=LINES)
def test_a_lone_surrogate_is_an_error_with_the_number_of_its_line(
    translator: Translator, before: list[str], line: str, place: int, surrogate: str, after: list[str]
) -> None:
    broken = line[:place] + surrogate + line[place:]
    with pytest.raises(InputError, match=rf"^line {len(before) + 7}: character \d+ is the lone surrogate U\+D[89A-F]"):
        translator.translate([*before, broken, *after], first_line=7)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("command")


@settings(max_examples=50)
@given(
    data=st.binary(max_size=40)
    | st.builds(
        lambda lines, tail: "\n".join(lines).encode() + tail,
        LINES,
        st.sampled_from([b"", b"\nten\n", b"\xff", b"\xc3\n", b"\xed\xa0\x80\n", b"\0\n"]),
    )
)
def test_any_bytes_give_a_line_for_each_line_or_an_error_that_says_where(folder: Path, data: bytes) -> None:
    source, output = folder / "in", folder / "out"
    source.write_bytes(data)
    output.unlink(missing_ok=True)
    with redirect_stderr(StringIO()) as stderr:
        code = main(["translate", str(GOLDEN), "--input", str(source), "--output", str(output), "--threads", "1"])
    if code == 0:
        assert re.fullmatch(r"(softsearch: (\d+ of \d+ translations|the model does not know) .*\n)*", stderr.getvalue())
        data.decode()
        lines = data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
        written = output.read_bytes()
        assert written.count(b"\n") == lines
        assert written.decode().endswith("\n" * (lines > 0))
    else:
        assert code == 1
        assert not output.exists()
        wrong = r":\d+:\d+ is not UTF-8|:\d+ is longer| is UTF-16| has lines that end with CR"
        where = rf"{re.escape(str(source))}({wrong})|line \d+ has"
        assert re.fullmatch(rf"softsearch: error: ({where}).*\n", stderr.getvalue())
