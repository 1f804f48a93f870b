"""Links of words on their way from files, or from Model 1, to batches."""

import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softsearch.data.corpora.base import Links
from softsearch.data.corpora.multilingual import Multilingual
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.dataset import NoisyText, ParallelDataset, Resampler
from softsearch.data.preparation.links import Lexicon, grow_diag_final
from softsearch.data.preparation.prepare import prepare
from softsearch.errors import CorpusError
from softsearch.text.filters import Filters
from softsearch.text.noise import Noise
from softsearch.text.subword_sampling import SubwordSampler
from softsearch.text.tokenizer import TokenizerTrainer
from softsearch.text.word_links import WordNumbers
from tests.support.pairs import write_corpus, write_pair

TRAINER = TokenizerTrainer(kind="bpe", vocab_size=60)


def numbered(folder: Path, name: str = "train", pairs: int = 60, seed: int = 1) -> Path:
    """Writes the links of a corpus of ``write_pair``, which is word by word."""
    src, _ = write_pair(folder, name, pairs, seed=seed)
    lines = (line.split() for line in src.read_text(encoding="utf-8").splitlines())
    path = folder / f"{name}.align"
    path.write_text("".join(" ".join(f"{i}-{i}" for i in range(len(words))) + "\n" for words in lines))
    return path


def linked(folder: Path, links: Links, **options: Any) -> Parallel:
    return replace(write_corpus(folder), links=links, **options)


def assert_word_by_word(dataset: ParallelDataset, draws: list[int], empty: int = 0) -> None:
    """Each token is linked to all tokens of the word of its number; of ``empty`` pairs none is."""
    assert dataset.links is not None
    batch = dataset.__getitems__(draws)
    assert batch.links is not None
    assert batch.links.shape == (len(draws), batch.tgt_tokens.shape[1] - 1, batch.src_tokens.shape[1])
    without = 0
    for weights, src, tgt in zip(batch.links.numpy(), batch.src_tokens, batch.tgt_tokens, strict=True):
        x, y = (
            side(np.array([token for token in ids.tolist() if token > 3]))
            for side, ids in zip(dataset.links.sides, (src, tgt), strict=True)
        )
        same = y[:, None] == x
        expected = np.zeros_like(weights)
        expected[: len(y), : len(x)] = same / same.sum(1, keepdims=True)
        without += not weights.any()
        if weights.any():
            np.testing.assert_allclose(weights, expected, rtol=1e-6)
    assert without == empty


@pytest.mark.parametrize("kind", ["bpe", "char", "word", "unigram"])
@pytest.mark.parametrize("reverse", [False, True])
def test_links_become_those_of_tokens(kind: Any, reverse: bool, tmp_path: Path) -> None:
    path = numbered(tmp_path)
    source = linked(tmp_path, {"train": path}, reverse_source=reverse, target_direction="r2l" if reverse else "l2r")
    vocab_size = 45 if kind == "unigram" else 60
    prepared = prepare(source, TokenizerTrainer(kind=kind, vocab_size=vocab_size), tmp_path / "cache")
    assert_word_by_word(prepared.dataset("train"), [0, 7, 33, 60 + 2])
    assert prepared.dataset("val").links is None
    assert prepared.report()["links"]["pairs"] == 60
    again = prepare(source, TokenizerTrainer(kind=kind, vocab_size=vocab_size), tmp_path / "cache")
    assert again.folder == prepared.folder
    assert prepare(replace(source, links=None), TRAINER, tmp_path / "cache").dataset("train").links is None


@pytest.mark.parametrize("tags", [1, 2])
def test_words_are_counted_without_tags(tags: int, tmp_path: Path) -> None:
    path, pair = numbered(tmp_path), replace(write_corpus(tmp_path), src_lang="en", tgt_lang="de")
    source = Multilingual(pairs={"de": pair}, source_tags=tags == 2, links={"train": [path]})
    dataset = prepare(source, TokenizerTrainer(kind="word", vocab_size=60), tmp_path / "cache").dataset("train")
    for draw in (0, 7, 33):
        links = dataset.__getitems__([draw]).links
        assert links is not None
        size = links.shape[1] - 1  # without the end
        np.testing.assert_array_equal(links[0, :size, tags : tags + size], np.eye(size))


def test_links_stay_with_their_pairs(tmp_path: Path) -> None:
    """Through filters, several corpora with weights, and pairs that are split off."""
    first, second = numbered(tmp_path), numbered(tmp_path, "more", 40, seed=9)
    for lines in ("train.en", "train.align"):  # an empty pair, and a pair twice
        path = tmp_path / lines
        content = path.read_text().splitlines()
        path.write_text("\n".join(["", *content[1:], content[5]]) + "\n")
    german = (tmp_path / "train.de").read_text().splitlines()
    (tmp_path / "train.de").write_text("\n".join([*german, german[5]]) + "\n")
    files = [[tmp_path / f"{name}.{lang}" for lang in ("en", "de")] for name in ("train", "more")]
    source = Parallel(
        train=files, val=15, filters=Filters(duplicates=True), weights=[1, 2.5], links={"train": [first, second]}
    )
    prepared = prepare(source, TRAINER, tmp_path / "cache")
    dataset = prepared.dataset("train")
    assert sum(prepared.kept_pairs("train")) + 15 < 100
    assert_word_by_word(dataset, list(range(len(dataset))))


def test_sampled_segmentations_keep_links_and_noise_drops_them(tmp_path: Path) -> None:
    prepared = prepare(linked(tmp_path, {"train": numbered(tmp_path)}), TRAINER, tmp_path / "cache")
    tokenizers = prepared.src_tokenizer, prepared.tgt_tokenizer
    src, tgt = (SubwordSampler(tokenizer, "bpe", 0.5) for tokenizer in tokenizers)
    sampler = Resampler((src, tgt), tokens=10_000, seed=1)
    drawn = prepared.dataset("train", sampler)
    assert drawn.__getitems__([60]).src_tokens.tolist() != drawn.__getitems__([0]).src_tokens.tolist()
    assert_word_by_word(drawn, [*range(60, 120)])
    noise = Noise(upper=0.5)
    cased = prepare(linked(tmp_path, {"train": numbered(tmp_path)}), TRAINER, tmp_path / "cache", noise=noise)
    tokenizers = cased.src_tokenizer, cased.tgt_tokenizer
    upper = NoisyText(noise, tokenizers, tokens=10_000, seed=1)
    plain, noisy = cased.dataset("train"), cased.dataset("train", upper)
    changed = 0
    for index in range(60):
        before, after = (each.__getitems__([index]).src_tokens[0, :-1].tolist() for each in (plain, noisy))
        is_changed = cased.src_tokenizer.decode(before) != cased.src_tokenizer.decode(after)
        assert_word_by_word(noisy, [index], empty=is_changed)
        changed += is_changed
    assert 0 < changed < 60  # a whole batch has one case


def test_model_1_links_words_that_occur_together(tmp_path: Path) -> None:
    prepared = prepare(linked(tmp_path, "auto"), TRAINER, tmp_path / "cache")
    store = prepared.dataset("train").links
    assert store is not None
    diagonal = [np.mean(np.ptp(store.numbers[i].reshape(-1, 2), axis=1) == 0) for i in range(60)]
    assert np.mean(diagonal) > 0.9
    assert prepared.folder != prepare(linked(tmp_path, None), TRAINER, tmp_path / "cache").folder


def test_a_repeated_word_is_linked_along_the_diagonal_and_a_new_one_is_not() -> None:
    src = [["a", "b"], ["a"], ["b", "c"], ["c"]]
    lexicon = Lexicon.train(src, [[f"{word}'" for word in line] for line in src])
    assert list(lexicon.partners([["a", "b", "x", "a"], ["x"]], [["a'", "b'", "y", "a'"], ["y"]])) == [
        [(0, 0), (1, 1), (3, 3)],
        [],
    ]
    assert list(lexicon.partners([], [])) == []


def test_grow_diag_final() -> None:
    forward, backward = {(0, 0), (1, 1), (2, 1), (4, 3)}, {(0, 0), (1, 1), (1, 2), (5, 5), (4, 0)}
    # (1, 2) and (2, 1) are next to (1, 1), and have a word without a link; the rest has one at the end, but not (4, 0),
    # whose words are both linked by then.
    assert grow_diag_final(forward, backward) == {(0, 0), (1, 1), (2, 1), (1, 2), (4, 3), (5, 5)}
    assert grow_diag_final(set(), set()) == set()
    everything = set(product(range(3), range(3)))
    assert grow_diag_final(everything, everything) == everything


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "0-0 9-9",
            r"train\.align:3 has the link '9-9', but the source has \d words and the target \d, numbered from 0",
        ),
        ("0-0;1-1", r"train\.align:3 has '0-0;1-1', expected word links such as '0-0 1-2'"),
        (None, r"train\.align has 59 lines, but its text has 60; expected one line of links per pair"),
    ],
)
def test_a_bad_line_is_named(line: str | None, message: str, tmp_path: Path) -> None:
    path = numbered(tmp_path)
    lines = path.read_text().splitlines()
    lines[2:3] = [] if line is None else [line]
    path.write_text("\n".join(lines) + "\n")
    if line is None:
        path.write_text("0-0\n" * 59)
    with pytest.raises(CorpusError, match=message):
        prepare(linked(tmp_path, {"train": path}), TRAINER, tmp_path / "cache")


def test_a_bad_line_is_named_in_the_users_file_where_pairs_are_split_off(tmp_path: Path) -> None:
    first, second = numbered(tmp_path), numbered(tmp_path, "more", 40, seed=9)
    files = [[tmp_path / f"{name}.{lang}" for lang in ("en", "de")] for name in ("train", "more")]
    source = Parallel(train=files, val=25, test=10, links={"train": [first, second]})
    left_out = sorted(
        int(n)
        for path in source.train_files(tmp_path / "cache")[1][0].parent.glob("train-0-1.left_out")
        for n in path.read_text().split()
    )
    assert left_out
    bad = next(number for number in range(left_out[len(left_out) // 2] + 1, 41) if number not in left_out)
    lines = second.read_text().splitlines()
    lines[bad - 1] = "0-77"
    second.write_text("\n".join(lines) + "\n")
    with pytest.raises(CorpusError, match=rf"^{re.escape(str(second))}:{bad} has the link '0-77'"):
        prepare(source, TRAINER, tmp_path / "cache")


def test_each_corpus_has_its_file(tmp_path: Path) -> None:
    path = numbered(tmp_path)
    with pytest.raises(CorpusError, match="has 2 files of links, but the training data has 1 corpora"):
        prepare(linked(tmp_path, {"train": [path, path]}), TRAINER, tmp_path / "cache")


def test_pairs_that_the_tokenizer_divides_otherwise_have_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(WordNumbers, "count", lambda _, words: len(words) + (words[0] == "a"))
    prepared = prepare(linked(tmp_path, {"train": numbered(tmp_path)}), TRAINER, tmp_path / "cache")
    report = prepared.report()["links"]
    assert report["left_out"] + report["pairs"] == 60
    assert f"{report['left_out']} pairs have no links, because the tokenizer divides them" in caplog.text
