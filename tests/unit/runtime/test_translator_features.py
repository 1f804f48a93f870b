"""What single features of a translator do with lines: reversed sides, long lines, prefixes, unknown words, traces."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softsearch.errors import ConfigError, InputError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.bundle_writing import write_bundle
from softsearch.runtime.session import OnnxStepFunction
from softsearch.runtime.translation import Translation, split_text
from softsearch.runtime.translator import Translator
from softsearch.search.beam import BeamSearch
from softsearch.search.greedy import Greedy
from softsearch.search.sampling import Sampling
from softsearch.text.tokenizer import train_tokenizer
from softsearch.text.vocabulary import SPECIALS
from tests.support.bundles import (
    MAX_SRC_TOKENS,
    SRC_LINES,
    bundle_parts,
    encoder_graph,
    make_bundle,
    tokenizers,
    word_tokenizers,
)

LINES = [*dict.fromkeys(SRC_LINES), "two cats", "ten", "one, two, three, four"]


def texts(translations: list[Translation]) -> list[str]:
    return [translation.text for translation in translations]


@pytest.mark.parametrize(("src", "tgt"), [(True, False), (False, True), (True, True)])
def test_reversed_sides_are_shown_in_the_order_of_the_text(tmp_path: Path, src: bool, tgt: bool) -> None:
    """Compared with search over ids that the test reverses; alignments are reversed with the words, EOS stays last."""
    bundle = make_bundle(tmp_path / "b", reversed={"src": src, "tgt": tgt})
    src_tokenizer, tgt_tokenizer = tokenizers()
    strategy = BeamSearch(beam=3, max_length_factor=1.5, max_length_offset=10, alignments=True)
    translator = Translator(bundle, threads=1)
    for line in LINES[:3]:
        ids = src_tokenizer.encode(line)
        step_fn = OnnxStepFunction(bundle)
        ((hypothesis, *_),) = strategy(step_fn, [ids[::-1] if src else ids])
        tokens = list(hypothesis.tokens)[:: -1 if tgt else 1]
        weights = hypothesis.alignments
        assert weights is not None
        if src:
            weights = np.concatenate([weights[:, :-1][:, ::-1], weights[:, -1:]], axis=1)
        if tgt:
            last = len(tokens)
            weights = np.concatenate([weights[:last][::-1], weights[last:]])
        (found,) = translator.translate([line], alignments=True)
        assert found.text == tgt_tokenizer.decode(tokens)
        assert found.src_pieces == (*src_tokenizer.pieces(ids), "</s>")
        assert found.tgt_pieces == (*tgt_tokenizer.pieces(tokens), *(() if found.truncated else ("</s>",)))
        assert found.alignments is not None
        np.testing.assert_allclose(found.alignments.astype(float), weights.astype(float), atol=1e-5)


def test_reversed_parts_of_a_long_line_stay_in_the_order_of_the_text(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path / "b", reversed={"src": True, "tgt": True})
    (found,) = Translator(bundle, threads=1).translate([" ".join(LINES)], alignments=True)
    without_ends = "".join(piece for piece in found.src_pieces if piece != "</s>")
    assert without_ends.replace("\u2581", " ").strip() == " ".join(LINES)
    assert found.alignments is not None
    np.testing.assert_allclose(found.alignments.sum(axis=1), 1.0, atol=1e-5)
    assert (found.alignments[0, found.src_pieces.index("</s>") + 1 :] == 0).all()


def test_a_long_line_of_several_sources_is_refused(tmp_path: Path) -> None:
    files, manifest = bundle_parts()
    tagged = train_tokenizer([f"{line} <and> {line}" for line in SRC_LINES], kind="bpe", vocab_size=50, tags=["<and>"])
    files["src.model"], files["encoder.onnx"] = tagged.model, encoder_graph(tagged.vocab_size)
    bundle = write_bundle(tmp_path / "b", files, {**manifest, "vocab_sizes": {"src": tagged.vocab_size, "tgt": 60}})
    text = " ".join(SRC_LINES[:6])
    with pytest.raises(InputError, match=r"line 2 has \d+ tokens, and its sources cannot be split together"):
        Translator(bundle).translate([text, f"{text} <and> {text}"])


def test_every_part_of_a_long_line_gets_its_language_tag(tmp_path: Path) -> None:
    files, manifest = bundle_parts()
    tagged = train_tokenizer([f"<2de> {line}" for line in SRC_LINES], kind="bpe", vocab_size=50, tags=["<2de>"])
    files["src.model"], files["encoder.onnx"] = tagged.model, encoder_graph(tagged.vocab_size)
    bundle = write_bundle(tmp_path / "b", files, {**manifest, "vocab_sizes": {"src": tagged.vocab_size, "tgt": 60}})
    translator = Translator(bundle, threads=1)
    text = " ".join(LINES)
    for line, tags in ((f"<2de> {text}", True), (f"<2fr> {text}", False), (text, False)):
        (found,) = translator.translate([line])
        parts = "".join(found.src_pieces).split("</s>")[:-1]
        assert len(parts) > 2
        assert [part.startswith("\u2581<2de>") for part in parts] == [tags] * len(parts)
    (short,) = translator.translate(["<2de> one"])
    assert short.src_pieces[0] == "\u2581<2de>"


def test_what_the_bundle_recommends_is_the_default(bundle_dir: Path) -> None:
    translator, limits = Translator(Bundle.open(bundle_dir)), {"max_length_factor": 1.5, "max_length_offset": 10}
    for options, strategy in (
        ({}, BeamSearch(beam=3, **limits)),
        ({"beam": 7, "max_length": "1 + 4 * source"}, BeamSearch(beam=7, max_length_factor=4.0, max_length_offset=1)),
        ({"search": "greedy"}, Greedy(**limits)),
        ({"search": "sample", "seed": 4, "top_k": 3}, Sampling(seed=4, top_k=3, **limits)),
        ({"groups": 3, "diversity": 2}, BeamSearch(beam=3, groups=3, diversity=2, **limits)),
    ):
        assert translator.translate(LINES, **options) == translator.translate(LINES, search=strategy)


def test_prefixes_begin_the_translations_of_their_lines(bundle_dir: Path, translator: Translator) -> None:
    lines = [*LINES, "", " ".join(LINES)]
    prefixes = ["eine Kat", "", "vier", "", "eins zwei", "", "", "", "sieben"][: len(lines)]
    prefixes += [""] * (len(lines) - len(prefixes))
    free = translator.translate(lines)
    for kind in ("beam", "greedy", "sample"):
        one, other = (Translator(bundle_dir, batch_tokens=n, threads=1) for n in (1000, 1))
        found = one.translate(lines, search=kind, prefixes=prefixes)
        assert texts(found) == texts(other.translate(lines, search=kind, prefixes=prefixes))
        for prefix, best, line, unforced in zip(prefixes, found, lines, free, strict=True):
            assert best.text.startswith(prefix) or not line
            if not prefix and kind == "beam":
                assert best.text == unforced.text


def test_a_prefix_that_cannot_be_written_names_its_line(translator: Translator) -> None:
    with pytest.raises(InputError, match=r"line 12: the model's vocabulary lacks a part of the prefix 'Ω'"):
        translator.translate(["one", "two"], prefixes=["eins", "\u03a9"], first_line=11)
    with pytest.raises(InputError, match="1 prefixes for 2 lines"):
        translator.translate(["one", "two"], prefixes=["eins"])


def test_prefixes_need_a_model_that_writes_from_left_to_right(bundle_dir: Path, tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path / "b", reversed={"src": False, "tgt": True})
    with pytest.raises(ConfigError, match="writes from the end of a text"):
        Translator(bundle, threads=1).translate(["one"], prefixes=["eins"])
    with pytest.raises(ConfigError, match="ExactSearch cannot continue target prefixes"):
        Translator(bundle_dir, threads=1).translate(["one"], search="exact", prefixes=["eins"])


@pytest.mark.parametrize("turned", [False, True])
def test_unknown_words_are_replaced_by_what_was_looked_at(tmp_path: Path, turned: bool) -> None:
    bundle = make_bundle(tmp_path / "b", words=True, reversed={"src": turned, "tgt": turned})
    translator, dictionary = Translator(bundle, threads=1), {"two": "zwei", "three": "drei"}
    lines = [*LINES, "a cat ten Rex one"]
    replaced: list[str] = []
    plain = translator.translate(lines, search="sample", n_best=4, alignments=True)
    replacing = translator.translate(lines, search="sample", n_best=4, replace_unknown=dictionary)
    for line, best, again in zip(lines, plain, replacing, strict=True):
        for before, after in zip(best.n_best, again.n_best, strict=True):
            assert (before.tgt_pieces, before.score) == (after.tgt_pieces, after.score)
            assert before.alignments is not None
            words = line.split()
            assert len(words) == len(before.src_pieces) - 1
            expected: list[str] = []
            for piece, weights in zip(before.tgt_pieces, before.alignments, strict=True):
                if piece == "<unk>":
                    most = np.flatnonzero(weights[:-1] == weights[:-1].max())  # unknown words get equal weights
                    replaced.append(words[most[-1 if turned else 0]])
                    expected.append(dictionary.get(replaced[-1], replaced[-1]))
                elif piece not in SPECIALS:
                    expected.append(piece.removeprefix("\u2581"))
            assert after.text == " ".join(expected)
            assert "\u2047" not in after.text
    assert dictionary.keys() & replaced
    assert len(set(replaced)) > 3


def test_each_part_of_a_long_line_is_looked_at_by_itself(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path / "b", words=True)
    drawn = {"search": "sample", "n_best": 9, "replace_unknown": True}
    known = next(iter(word_tokenizers()[0].vocabulary())).removeprefix("\u2581")
    line = " ".join(f"{known} x{number}" for number in range(40))
    translator = Translator(bundle, threads=1)
    encode = word_tokenizers()[0].encode
    parts = translator.translate(split_text(line, lambda part: len(encode(part)) < MAX_SRC_TOKENS), **drawn)
    assert len(parts) > 2
    (best,) = translator.translate([line], **drawn)
    assert any("<unk>" in found.tgt_pieces for found in best.n_best)
    ranks = zip(*(part.n_best for part in parts), strict=True)
    assert [found.text for found in best.n_best] == [" ".join(part.text for part in rank) for rank in ranks]


@pytest.mark.parametrize(
    "options", [{"alignments": True}, {"coverage_penalty": 0.2}, {"replace_unknown": True}, {"markup": True}]
)
def test_what_needs_attention_or_words_is_refused_without(
    bundle_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match="needs a word model"):
        Translator(bundle_dir).translate([], replace_unknown=True)
    blind = Translator(make_bundle(tmp_path / "b", words=True))
    monkeypatch.setattr(blind.system.step_fn, "has_attention", False)
    assert blind.translate(["one"])
    with pytest.raises(ConfigError, match="has no attention"):
        blind.translate(["one"], **options)


@pytest.mark.parametrize(
    "options",
    [{"beam": 3, "n_best": 2}, {"search": "greedy"}, {"beam": 2, "banned": ["e"]}, {"glossary": {"two": "zehn"}}],
    ids=str,
)
def test_a_trace_changes_no_translation_and_ends_in_it(translator: Translator, options: dict[str, Any]) -> None:
    lines = [*LINES, "", " ".join(LINES) * 4]
    traced = translator.translate(lines, trace=True, **options)
    for plain, found in zip(translator.translate(lines, **options), traced, strict=True):
        assert repr(replace(found, traces=())) == repr(plain)
        written = [piece for trace in found.traces for piece in trace["ranking"][0]["pieces"]]
        assert written == list(found.tgt_pieces)
        assert [piece for trace in found.traces for piece in trace["src_pieces"]] == list(found.src_pieces)
    assert [len(found.traces) > 1 for found in traced] == [False] * (len(lines) - 1) + [True]
    with pytest.raises(ConfigError, match="a trace shows beam or greedy search, found Sampling; change search"):
        translator.translate([], trace=True, search="sample")
