"""Searches, ensembles and unknown words on the command line, compared with the translator."""

from pathlib import Path

import numpy as np
import pytest

from softsearch.runtime.bundle import Bundle
from softsearch.runtime.bundle_writing import write_bundle
from softsearch.runtime.cli import main
from softsearch.runtime.session import OnnxStepFunction
from softsearch.runtime.shortlist_files import shortlist_files
from softsearch.runtime.translator import Translator
from softsearch.search.ensemble import AVERAGES
from softsearch.search.rerank import Rerank, RescoringModel
from softsearch.text.moses import detokenize
from tests.support.bundles import SRC_LINES, bundle_parts, make_bundle, search, tokenizers

LINES = list(dict.fromkeys(SRC_LINES))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "in.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


def translate(text: Path, out: Path, *options: object) -> list[str]:
    assert main(["translate", *map(str, options), "--input", str(text), "--output", str(out)]) == 0
    return out.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("options", "kind", "expected"),
    [
        (["--length-penalty", "0", "--exact-stop"], "beam", {"length_penalty": 0.0, "exact_stop": True}),
        (["--coverage-penalty", "2"], "beam", {"coverage_penalty": 2.0}),
        (["--beam", "4", "--groups", "2"], "beam", {"beam": 4, "groups": 2}),
        (["--max-length", "1 + 0.5 * source"], "beam", {"max_length_factor": 0.5, "max_length_offset": 1}),
        (["--min-length", "9", "--no-repeat-ngram", "1"], "beam", {"min_length_offset": 9, "no_repeat_ngram": 1}),
        (["--search", "greedy", "--min-length", "7"], "greedy", {"min_length_offset": 7}),
        (["--search", "sample", "--seed", "3", "--top-k", "5"], "sample", {"seed": 3, "top_k": 5}),
    ],
)
def test_a_search_is_the_strategy_of_that_name(
    bundle_dir: Path, text: Path, tmp_path: Path, options: list[str], kind: str, expected: dict[str, object]
) -> None:
    found = Translator(bundle_dir).translate(LINES, search=search(bundle_dir, kind, **expected))
    assert translate(text, tmp_path / "out", bundle_dir, *options) == [translation.text for translation in found]


def test_exact_search_says_on_standard_error_what_it_could_not_prove(
    bundle_dir: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--search", "exact", "--max-length", "3"]
    assert len(translate(text, tmp_path / "out", bundle_dir, *options)) == len(LINES)
    assert capsys.readouterr().err == ""
    translate(text, tmp_path / "out", bundle_dir, *options, "--max-nodes", 1)
    assert f"softsearch: {len(LINES)} lines may have a better translation; raise --max-nodes" in capsys.readouterr().err


def test_several_bundles_write_together(bundle_dir: Path, text: Path, tmp_path: Path) -> None:
    other = make_bundle(tmp_path / "other", seed=1).path
    alone, theirs = (translate(text, tmp_path / "out", folder) for folder in (bundle_dir, other))
    both = translate(text, tmp_path / "out", bundle_dir, other)
    assert both not in (alone, theirs)
    assert translate(text, tmp_path / "out", bundle_dir, other, "--weights", "1,0") == alone
    assert translate(text, tmp_path / "out", bundle_dir, other, "--weights", "0,2") == theirs
    scores = []
    for average in AVERAGES:
        expected = Translator([bundle_dir, other], weights=[3, 1], average=average).translate(LINES)
        options = ("--average", average, "--weights", "3,1", "--n-best", 1)
        rows = [line.split(" ||| ") for line in translate(text, tmp_path / "out", bundle_dir, other, *options)]
        assert [row[1] for row in rows] == [best.text for best in expected]
        scores.append([float(row[2]) for row in rows])
        assert scores[-1] == pytest.approx([best.score for best in expected], abs=1e-3)
    assert all(ours > theirs + 0.01 for ours, theirs in zip(*scores[:2], strict=True))
    lm = make_bundle(tmp_path / "lm", seed=1, reads=False).path
    with_lm = translate(text, tmp_path / "out", bundle_dir, "--lm", lm, "--lm-weight", "1")
    assert with_lm not in (alone, both)
    assert translate(text, tmp_path / "out", bundle_dir, "--lm", lm, "--lm-weight", "0") == alone


def test_each_bundle_reads_its_own_input(
    bundle_dir: Path, text: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other, second, out = make_bundle(tmp_path / "other", seed=1).path, tmp_path / "second", tmp_path / "out"
    second.write_text("".join(f"{line}\n" for line in reversed(LINES)))
    limit = ("--max-length", "8")  # else it follows the length of all sources
    begin = ["translate", str(bundle_dir), str(other), "--input", str(text), "--output", str(out), *limit]

    def together(*options: str) -> list[str]:
        assert main([*begin, "--input", str(second), *options]) == 0
        return out.read_text().splitlines()

    both = together()
    pairs = [f"{one} <and> {two}" for one, two in zip(LINES, reversed(LINES), strict=True)]
    assert both == [found.text for found in Translator([bundle_dir, other], inputs=2).translate(pairs, max_length=8)]
    weighted = {weights: together("--weights", weights) for weights in ("1,0", "0,1")}
    assert weighted["1,0"] == translate(text, out, bundle_dir, *limit)
    assert weighted["0,1"] == translate(second, out, other, *limit)
    assert both not in weighted.values()
    out.unlink()
    assert main([*begin, *["--input", str(second)] * 2]) == 2
    assert "3 inputs for 2 models, 0 of them with several sources; expected one for all" in capfd.readouterr().err
    count = len(LINES)
    for lines, message in (
        (LINES[1:], f"{text} has {count} lines, {second} has {count - 1} lines; expected the same sentences"),
        ([*LINES, "ten", "ten"], f"{text} has {count} lines, {second} has {count + 2} lines; expected the same"),
        (["one", "", *LINES[2:]], "has 2 sources, 1 of them with text; expected 2, one for each model"),
        (["one", "one <and> two", *LINES[2:]], "has 3 sources, 3 of them with text; expected 2, one for each model"),
        ([" ".join(LINES * 9), *LINES[1:]], "and its sources cannot be split together; expected fewer than 24 tokens"),
    ):
        second.write_text("".join(f"{line}\n" for line in lines))
        assert main([*begin, "--input", str(second)]) == 1
        assert message in capfd.readouterr().err
        assert not out.exists()


def test_other_bundles_rerank_what_the_beam_found(bundle_dir: Path, text: Path, tmp_path: Path) -> None:
    turned = make_bundle(tmp_path / "turned", seed=2, reversed={"src": False, "tgt": True}).path
    options = ["--search", "rerank", "--beam", 4, "--rescore", turned]
    alone, theirs, both = (
        translate(text, tmp_path / "out", bundle_dir, *options, "--rescore-weights", weights)
        for weights in ("1,0", "0,1", "1,1")
    )
    assert alone == translate(text, tmp_path / "out", bundle_dir, "--beam", 4)
    assert alone not in (theirs, both)
    first, other = (OnnxStepFunction(Bundle.open(folder)) for folder in (bundle_dir, turned))
    by_hand = Rerank(
        search(bundle_dir, beam=4, n_best=4), [RescoringModel(other, tgt=lambda ids: [*reversed(ids)])], [1.0, 1.0]
    )
    encode, decode = tokenizers()[0].encode, tokenizers()[1].decode
    assert both == [decode(n_best[0].tokens) for n_best in by_hand(first, [encode(line) for line in LINES])]
    n_best = translate(text, tmp_path / "out", bundle_dir, *options, "--n-best", 2)
    assert [line.split(" ||| ")[1] for line in n_best[::2]] == both
    assert len(n_best) == 2 * len(LINES)


def test_plain_lines_for_a_model_of_tokenised_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    facts = {"config": {"data": {"text_form": "lc_tok", "src_lang": "en", "tgt_lang": "de"}}}
    bundle = make_bundle(tmp_path / "bundle", training=facts)
    forms = {"plain": "A cat sat, and SO did we.\nTen\n", "tokens": "a cat sat , and so did we .\nten\n"}
    for name, lines in forms.items():
        (tmp_path / name).write_text(lines)
    begin = ["--alignments", tmp_path / "weights", "--prefix", tmp_path / "begin"]
    (tmp_path / "begin").write_text("Eine,\n\n")
    plain = translate(tmp_path / "plain", tmp_path / "out", bundle.path, *begin)
    pieces = (tmp_path / "weights").read_text()
    assert translate(tmp_path / "tokens", tmp_path / "out", bundle.path, *begin) == plain
    (tmp_path / "begin").write_text("eine ,\n\n")
    tokens = translate(tmp_path / "tokens", tmp_path / "out", bundle.path, *begin, "--tokenized")
    assert (tmp_path / "weights").read_text() == pieces
    assert plain == list(map(detokenize, tokens)) != tokens
    scores = []
    for name, options in (("plain", []), ("tokens", []), ("tokens", ["--tokenized"]), ("plain", ["--tokenized"])):
        assert main(["score", str(bundle.path), *[str(tmp_path / name)] * 2, *options]) == 0
        scores.append(capfd.readouterr().out)
    assert scores[0] == scores[1] == scores[2] != scores[3]


def test_bans_prefixes_and_shortlists(bundle_dir: Path, text: Path, tmp_path: Path) -> None:
    (tmp_path / "begins").write_text("eine\n" * len(LINES))
    begun = translate(text, tmp_path / "out", bundle_dir, "--prefix", tmp_path / "begins")
    assert {line[:4] for line in begun} == {"eine"}
    files, manifest = bundle_parts()
    src_vocab = tokenizers()[0].vocab_size
    files |= shortlist_files(np.array([5, 6, 7]), np.full((src_vocab, 1), 9))
    bundle = write_bundle(tmp_path / "short", files, manifest)
    allowed = {tokenizers()[1].decode([token]).strip() for token in (5, 9)}
    words = {word for line in translate(text, tmp_path / "out", bundle.path, "--shortlist", 1) for word in line.split()}
    assert "".join(words).translate(str.maketrans("", "", "".join(allowed))) == ""
    assert main(["verify", str(bundle.path)]) == 0
    first = tokenizers()[1].pieces([5])[0]
    again = translate(text, tmp_path / "out", bundle.path, "--shortlist", 1, "--banned", first)
    assert tokenizers()[1].decode([5]) not in "".join(again)


@pytest.mark.parametrize("recommended", ["greedy", "sample", "exact"])
def test_a_bundle_is_translated_as_it_recommends_unless_another_search_is_named(
    bundle_dir: Path, text: Path, tmp_path: Path, recommended: str
) -> None:
    limits = {"max_length_factor": 0.5, "max_length_offset": 2}
    bundle = make_bundle(tmp_path / "b", search={"name": recommended, **limits}).path
    plain = translate(text, tmp_path / "out", bundle)
    strategy = search(bundle_dir, recommended, **limits)
    assert plain == [found.text for found in Translator(bundle_dir).translate(LINES, search=strategy)]
    assert plain == translate(text, tmp_path / "out", bundle, "--search", recommended)
    beam = translate(text, tmp_path / "out", bundle, "--search", "beam", "--beam", 4)
    strategy = search(bundle_dir, beam=4, **limits)
    assert beam == [found.text for found in Translator(bundle_dir).translate(LINES, search=strategy)]
    assert main(["verify", str(bundle)]) == 0


def test_options_of_another_search_than_the_recommended_are_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = make_bundle(tmp_path / "b", search={"name": "exact"}).path
    with pytest.raises(SystemExit) as stopped:
        main(["translate", str(bundle), "--banned", "x"])
    assert stopped.value.code == 2
    assert "not of --search exact" in capsys.readouterr().err


def test_verify_refuses_an_edited_manifest(victim: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = victim / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"beam": 3', '"beam": 1'))
    assert main(["verify", str(victim)]) == 1
    assert "manifest.json has sha256" in capsys.readouterr().err


def test_unknown_words_are_replaced(text: Path, tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path / "b", words=True).path
    (tmp_path / "words.tsv").write_text("one\tEINS\t3\ntwo\tZWEI\t1\n")
    drawn = ["--search", "sample", "--n-best", 5]
    plain = translate(text, tmp_path / "out", bundle, *drawn)
    copied = translate(text, tmp_path / "out", bundle, *drawn, "--replace-unknown")
    looked_up = translate(text, tmp_path / "out", bundle, *drawn, "--replace-unknown", tmp_path / "words.tsv")
    assert any("\u2047" in line for line in plain)
    assert "\u2047" not in "".join(copied + looked_up)
    assert "one" in " ".join(copied).split()
    assert [line.replace("one", "EINS").replace("two", "ZWEI") for line in copied] == looked_up


@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        (2, ["--shortlist", "5"], "has no shortlist; export it with shortlist=10"),
        (2, ["--replace-unknown"], "replacing unknown words needs a word model"),
        (1, ["--replace-unknown", "nowhere.tsv"], "nowhere.tsv"),
        (2, ["--banned", "Quatsch"], "banned Quatsch: the target vocabulary has no such token"),
        (2, ["--beam", "4", "--groups", "3"], "--groups is 3, expected a divisor of beam (4)"),
        (2, ["--n-best", "10"], "--n-best is 10, expected at most beam (3); set --beam=10"),
        (2, ["--lm", "BUNDLE", "--lm-weight", "1"], "small translates; expected a language model"),
        (1, ["--lm", "nowhere", "--lm-weight", "1"], "bundle nowhere cannot be read"),
        (1, ["--prefix", "nowhere.txt"], "nowhere.txt does not exist"),
    ],
)
def test_what_cannot_be_done_is_one_line_of_error(
    bundle_dir: Path, text: Path, code: int, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [str(bundle_dir) if option == "BUNDLE" else option for option in options]
    assert main(["translate", str(bundle_dir), "--input", str(text), *options]) == code
    error = capsys.readouterr().err
    assert error.startswith("softsearch: error: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("flag", ["--output", "--trace", "--alignments", "--attention", "--confidence"])
def test_no_output_overwrites_the_input(
    flag: str, bundle_dir: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["translate", str(bundle_dir), "--input", str(text), flag, str(text)]) == 2
    assert f"{flag} {text} would overwrite {text}, which --input reads; write another" in capsys.readouterr().err
    assert text.read_text(encoding="utf-8").splitlines() == LINES


def test_rescore_needs_no_search(bundle_dir: Path, text: Path, tmp_path: Path) -> None:
    named = translate(text, tmp_path / "out", bundle_dir, "--search", "rerank", "--rescore", bundle_dir)
    assert translate(text, tmp_path / "out", bundle_dir, "--rescore", bundle_dir) == named


def test_it_says_how_many_lines_the_limit_ended(
    bundle_dir: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    translate(text, tmp_path / "out", bundle_dir, "--max-length", "1")
    ended = sum(found.truncated for found in Translator(bundle_dir).translate(LINES, max_length=1))
    assert ended
    assert f"softsearch: {ended} of {len(LINES)} translations were cut off at the length" in capsys.readouterr().err


def test_a_file_of_banned_tokens_is_read_once(
    bundle_dir: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bans").write_text("@-@\n")  # a hyphen as the Moses tokenizer writes it, not a file named -@
    assert main(["translate", str(bundle_dir), "--input", str(text), "--banned", f"@{tmp_path / 'bans'}"]) == 2
    assert "banned @-@: the target vocabulary has no such token" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["0", "400", "100000", f"1{'0' * 30}", "9" * 400, "9" * 5000, "0.0000001"])
@pytest.mark.parametrize(
    ("kind", "option"),
    [
        *(("beam", o) for o in ("--beam", "--n-best", "--length-penalty", "--coverage-penalty", "--no-repeat-ngram")),
        *(("beam", o) for o in ("--groups", "--max-length", "--min-length", "--batch-tokens", "--threads")),
        *(("sample", o) for o in ("--temperature", "--top-k", "--top-p", "--seed")),
        ("exact", "--max-nodes"),
        ("rerank", "--rescore-length-penalty"),
        ("rerank", "--rescore-weights"),
    ],
)
def test_a_number_is_heeded_or_refused_in_one_line(
    bundle_dir: Path, text: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str, option: str, value: str
) -> None:
    rescore = ["--rescore", str(bundle_dir)] if kind == "rerank" else []
    files = ["--input", str(text), "--output", str(tmp_path / "out")]
    try:
        code: object = main(["translate", str(bundle_dir), "--search", kind, *rescore, option, value, *files])
    except SystemExit as stopped:
        code = stopped.code
    error = capfd.readouterr().err
    if code == 0:
        assert len((tmp_path / "out").read_text().splitlines()) >= len(LINES)
    else:
        assert code == 2
        assert option in error.splitlines()[-1]
        assert error.splitlines()[-1].startswith("softsearch")
