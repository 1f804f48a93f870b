"""Noise in batches of token ids: the same text for every process, within the budget, and nothing where it is off."""

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softsearch.data.datamodule import _check_noise
from softsearch.data.dataset import MAX_GROWTH, Batch, NoisyText
from softsearch.errors import ConfigError
from softsearch.text.noise import NO_NOISE, Noise
from softsearch.text.vocabulary import SOURCE_SEPARATOR, UNK
from tests.unit.data.test_datamodule import SAMPLED, make

FULL = Noise(upper=0.3, title=0.2, lower=0.1, merge=0.4, end_punctuation=0.3, typos=0.2)


def noisy(folder: Path, noise: Noise = FULL, **options: Any) -> Any:
    return make(folder, tokenizer=SAMPLED, noise=noise, **options)


def batches(data: Any, epoch: int = 0) -> list[Batch]:
    loader = data.train_dataloader()
    data.batches_trained = epoch * len(loader)
    return list(loader)


def values(found: list[Batch]) -> list[list[list[list[int]]]]:
    return [[batch.src_tokens.tolist(), batch.tgt_tokens.tolist()] for batch in found]


def texts(data: Any, found: list[Batch]) -> list[tuple[str, str]]:
    src, tgt = data.prepared.src_tokenizer, data.prepared.tgt_tokenizer
    return [
        (src.decode(one), tgt.decode(other))
        for batch in found
        for one, other in zip(batch.src_tokens.tolist(), batch.tgt_tokens.tolist(), strict=True)
    ]


def test_off_is_as_without(tmp_path: Path) -> None:
    plain, off = make(tmp_path, tokenizer=SAMPLED), noisy(tmp_path, NO_NOISE)
    assert off.prepared.folder == plain.prepared.folder
    assert values(batches(off)) == values(batches(plain))
    assert noisy(tmp_path, Noise(typos=0.1, merge=0.1, end_punctuation=1)).prepared.folder == plain.prepared.folder
    assert noisy(tmp_path).prepared.folder != plain.prepared.folder


def test_epochs_differ_and_any_process_sees_the_same(tmp_path: Path) -> None:
    whole = [values(batches(noisy(tmp_path), epoch)) for epoch in (0, 1)]
    assert whole == [values(batches(noisy(tmp_path, num_workers=1), epoch)) for epoch in (0, 1)]
    assert sorted(whole[0]) != sorted(whole[1])


def test_two_ranks_see_the_batches_of_one_process(tmp_path: Path) -> None:
    alone = values(batches(noisy(tmp_path, tokens=2000, sentences=6)))
    assert len(alone) % 2 == 0
    shares = [values(batches(noisy(tmp_path, tokens=2000, sentences=6, world_size=2, rank=rank))) for rank in (0, 1)]
    assert sorted(shares[0] + shares[1]) == sorted(alone)


def test_the_text_has_the_noise_of_its_draw(tmp_path: Path) -> None:
    data = make(tmp_path, noise=Noise(upper=1), tokens=2000)
    clean = texts(make(tmp_path, tokens=2000), batches(make(tmp_path, tokens=2000)))
    assert sorted(texts(data, batches(data))) == sorted(
        (src.upper(), tgt.upper().replace("\u1e9e", "SS")) for src, tgt in clean
    )


def test_reversed_text_is_read_as_it_is_written(tmp_path: Path) -> None:
    data = make(tmp_path, noise=Noise(merge=1), tokens=2000)
    data.source = type(data.source)(
        train=data.source.train, val=data.source.val, reverse_source=True, target_direction="r2l"
    )
    forwards = make(tmp_path, noise=Noise(merge=1), tokens=2000)
    assert sorted(texts(data, batches(data))) == sorted(texts(forwards, batches(forwards)))


def test_batches_stay_within_twice_the_budget_and_unknown_text_as_it_was(tmp_path: Path) -> None:
    data = noisy(tmp_path, Noise(merge=1))
    tokenizers = data.prepared.src_tokenizer, data.prepared.tgt_tokenizer
    pairs = [tuple(tok.encode(line)) for tok, line in zip(tokenizers, ("a dog runs", "ein hund rennt"), strict=True)]
    rows = [tuple(np.array(ids, dtype=np.uint16) for ids in pairs)] * 3
    width = max(map(len, pairs)) + 1
    unknown = (np.array([UNK], dtype=np.uint16), rows[0][1])
    for tokens, fits in ((3 * width, True), (2 * width, False)):
        change = pickle.loads(pickle.dumps(NoisyText(Noise(merge=1), tokenizers, tokens=tokens, seed=1)))
        found = change([0, 1, 2], rows)
        assert all(max(map(len, pair)) + 1 <= MAX_GROWTH * tokens // 3 for pair in found)
        assert [(len(one) > len(before)) for (one, _), (before, _) in zip(found, rows, strict=True)] == [fits] * 3
        assert change([0, 1], [unknown, unknown]) == [unknown, unknown]
    upper = NoisyText(Noise(upper=1), tokenizers, tokens=1000, seed=1)
    [same] = upper([0], rows[:1])
    assert [ids.tolist() for ids in same] == [*map(list, pairs)]  # capitals, which it lacks, are read as small


@pytest.mark.parametrize("noise", [Noise(typos=0.5), Noise(merge=0.5)])
def test_another_seed_gives_other_noise(tmp_path: Path, noise: Noise) -> None:
    data = noisy(tmp_path)
    tokenizers = data.prepared.src_tokenizer, data.prepared.tgt_tokenizer
    lines = ("a dog runs", "ein hund rennt")
    rows = [tuple(np.array(tok.encode(line)) for tok, line in zip(tokenizers, lines, strict=True))] * 2
    of_seeds = []
    for seed in (1, 2, 1):
        change = NoisyText(noise, tokenizers, tokens=1000, seed=seed)
        of_seeds.append([[[*map(list, pair)] for pair in change([draw, -draw], rows)] for draw in range(1, 40)])
    assert of_seeds[0] == of_seeds[2] != of_seeds[1]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"has_features": True}, "one source text"),
        ({"tags": (SOURCE_SEPARATOR,)}, "one source text"),
        ({"text_form": "lc_tok"}, "lower-cased"),
    ],
)
def test_other_sources_are_refused(tmp_path: Path, source: dict[str, Any], message: str) -> None:
    usual = {"has_features": False, "tags": (), "text_form": "plain"}
    _check_noise(NO_NOISE, SimpleNamespace(**usual | source))
    with pytest.raises(ConfigError, match=message):
        _check_noise(FULL, SimpleNamespace(**usual | source))
