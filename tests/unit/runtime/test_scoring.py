"""Scores of files: the lines of the output, and files that are refused."""

import io
import math
from pathlib import Path

import pytest

from softsearch.runtime.bundle import Bundle
from softsearch.runtime.cli import main
from softsearch.runtime.scoring import ScoreWriter
from softsearch.runtime.session import OnnxStepFunction
from softsearch.search.forced_decoding import PairScore, score_pairs
from tests.support.bundles import MAX_SRC_TOKENS, SRC_LINES, TGT_LINES, make_bundle, tokenizers
from tests.unit.runtime.test_cli import softsearch_run

PAIRS = list(zip(SRC_LINES[:4], TGT_LINES[:4], strict=True))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Four pairs of lines."""
    paths = tmp_path / "x.en", tmp_path / "x.de"
    for path, lines in zip(paths, zip(*PAIRS, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


def expected_scores(bundle_dir: Path, pairs: list[tuple[str, str]]) -> list[PairScore]:
    src, tgt = tokenizers()
    ids = [(src.encode(one), tgt.encode(other)) for one, other in pairs]
    step_fn = OnnxStepFunction(Bundle.open(bundle_dir))
    return [score_pairs(step_fn, [one], [other], batch_tokens=100)[0] for one, other in ids]


def test_one_line_for_each_pair_and_a_summary(bundle_dir: Path, files: tuple[Path, Path]) -> None:
    done = softsearch_run("score", bundle_dir, *files)
    assert done.returncode == 0, done.stderr
    scores = expected_scores(bundle_dir, PAIRS)
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    assert [int(row[1]) for row in rows] == [len(score.token_log_probs) for score in scores]
    assert [float(row[0]) for row in rows] == pytest.approx([score.log_prob for score in scores], rel=1e-5)
    assert all(len(row) == 2 for row in rows)
    tokens = sum(len(score.token_log_probs) for score in scores)
    perplexity = math.exp(-sum(score.log_prob for score in scores) / tokens)
    assert done.stderr.decode().startswith(f"4 pairs, {tokens:,} target tokens, log probability -")
    assert float(done.stderr.decode().split("perplexity ")[1].split()[0].replace(",", "")) == pytest.approx(
        perplexity, rel=1e-3
    )


def test_tokens_add_up_in_a_file_that_is_asked_for(bundle_dir: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    done = softsearch_run("score", bundle_dir, *files, "--tokens", "--output", tmp_path / "out")
    assert (done.returncode, done.stdout) == (0, b"")
    for line, score in zip(
        (tmp_path / "out").read_text().splitlines(), expected_scores(bundle_dir, PAIRS), strict=True
    ):
        log_prob, tokens, each = line.split("\t")
        log_probs = [float(value) for value in each.split(" ")]
        assert len(log_probs) == int(tokens)
        assert sum(log_probs) == pytest.approx(float(log_prob), rel=1e-5)
        assert log_probs == pytest.approx(score.token_log_probs, abs=1e-4)


def test_the_summary_counts_all_that_was_written() -> None:
    writer = ScoreWriter(io.BytesIO(), tokens=False)
    writer.write([PairScore(-2.0, (-1.5, -0.5))])
    writer.write([PairScore(-1.0, (-1.0,))])
    assert (writer.pairs, writer.tokens) == (2, 3)
    assert writer.summary() == (
        "2 pairs, 3 target tokens, log probability -3.000, 1.0000 nats and perplexity 2.7183 per token"
    )
    writer.write([PairScore(-math.inf, (-math.inf,))])
    assert writer.summary().endswith("inf nats and perplexity inf per token")


@pytest.mark.parametrize(
    ("src", "tgt", "message"),
    [
        (b"one\ntwo\n", b"eins\n", "x.en has 2 lines, "),
        (b"one\ntwo\n", b"eins\n", "x.de has 1; line 2 is in only one of them"),
        (b"one\n" + b"ten " * 40, b"a\nb\n", "x.en:2 has "),
        (b"one\n" + b"ten " * 40, b"a\nb\n", f"expected at most {MAX_SRC_TOKENS}, so put"),
        (b"one\n", b"ein " * 300, "expected at most 44, so put"),
        (b"one\n", b"\xff\n", "x.de:1:1 is not UTF-8"),
        (b"", b"", "x.en is empty"),
    ],
)
def test_files_that_cannot_be_scored_are_one_line_of_error(
    bundle_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], src: bytes, tgt: bytes, message: str
) -> None:
    paths = tmp_path / "x.en", tmp_path / "x.de"
    for path, content in zip(paths, (src, tgt), strict=True):
        path.write_bytes(content)
    assert main(["score", str(bundle_dir), *map(str, paths), "--output", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("softsearch: error: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("tokens", [[], ["--tokens"]])
def test_a_pair_with_a_blank_line_is_an_empty_line(
    bundle_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], tokens: list[str]
) -> None:
    def scored(src: str, tgt: str) -> tuple[list[str], str]:
        (tmp_path / "src").write_text(src)
        (tmp_path / "tgt").write_text(tgt)
        assert main(["score", str(bundle_dir), str(tmp_path / "src"), str(tmp_path / "tgt"), *tokens]) == 0
        printed = capsys.readouterr()
        return printed.out.splitlines(), printed.err

    (one, two), summary = scored("one\ntwo\n", "eins\nzwei\n")
    assert scored("one\n\n \ntwo\n", "eins\n\nx\nzwei\n") == ([one, "", "", two], summary)
    assert scored("\n", "x\n")[0] == [""]


def test_the_longest_pair_that_a_bundle_takes_is_scored(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path / "small").path
    src, tgt = tokenizers()
    long_src = long_tgt = ""
    while len(src.encode(f"{long_src}a")) < MAX_SRC_TOKENS:
        long_src += "a"
    while len(tgt.encode(f"{long_tgt}e")) < 44:
        long_tgt += "e"
    (tmp_path / "x.en").write_text(f"{long_src}\n")
    (tmp_path / "x.de").write_text(f"{long_tgt}\n")
    paths = tmp_path / "x.en", tmp_path / "x.de", tmp_path / "out"
    assert main(["score", str(bundle), str(paths[0]), str(paths[1]), "--output", str(paths[2])]) == 0
    assert paths[2].read_text().split("\t")[1] == "44\n"
