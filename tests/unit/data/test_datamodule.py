"""The datamodule: a loader for each rank, and a state that resuming can trust."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from softsearch.data.corpora.parallel import Parallel
from softsearch.data.datamodule import ParallelDataModule
from softsearch.data.dataset import Batch
from softsearch.data.sampler import Batching
from softsearch.errors import CheckpointError, ConfigError, CorpusError
from softsearch.text.noise import NO_NOISE, Noise
from softsearch.text.tokenizer import TokenizerTrainer
from softsearch.text.vocabulary import EOS
from tests.support.pairs import write_corpus, write_pair


def rank_of(world_size: int, rank: int = 0) -> SimpleNamespace:
    """The little that a datamodule asks of a trainer."""
    device = SimpleNamespace(type="cpu")
    return SimpleNamespace(
        world_size=world_size,
        global_rank=rank,
        strategy=SimpleNamespace(root_device=device),
        val_check_interval=4,
        check_val_every_n_epoch=None,
        accumulate_grad_batches=1,
        limit_train_batches=1.0,
        limit_val_batches=1.0,
        max_epochs=-1,
        max_steps=100,
    )


CHARS = TokenizerTrainer(kind="char", vocab_size=60)
SAMPLED = TokenizerTrainer(kind="bpe", vocab_size=100, sampling=0.3)


def make(
    folder: Path,
    *,
    world_size: int = 1,
    rank: int = 0,
    seed: int = 1,
    tokenizer: TokenizerTrainer = CHARS,
    noise: Noise = NO_NOISE,
    **batching: int,
) -> ParallelDataModule:
    data = ParallelDataModule(
        source=write_corpus(folder),
        tokenizer=tokenizer,
        batching=Batching(**{"tokens": 120, **batching}),
        cache_dir=folder / "cache",
        seed=seed,
        noise=noise,
    )
    data.trainer = rank_of(world_size, rank)  # type: ignore[assignment]
    return data


def rows(batches: list[Batch]) -> list[tuple[int, ...]]:
    """Every pair as its source's tokens, without padding."""
    return [tuple(row[: row.index(EOS)]) for batch in batches for row in batch.src_tokens.tolist()]


def test_an_epoch_has_every_pair(tmp_path: Path) -> None:
    data = make(tmp_path)
    dataset = data.prepared.dataset("train")
    found = rows(list(data.train_dataloader()))
    assert sorted(found) == sorted(tuple(dataset.src[i].tolist()) for i in range(len(dataset)))


@pytest.mark.parametrize("split", ["train", "val"])
def test_ranks_share_the_pairs(tmp_path: Path, split: str) -> None:
    shares = []
    for rank in range(2):
        data = make(tmp_path, world_size=2, rank=rank)
        loader = data.train_dataloader() if split == "train" else data.val_dataloader()
        shares.append(list(loader))
    dataset = make(tmp_path).prepared.dataset(split)
    together = rows(shares[0]) + rows(shares[1])
    assert sorted(together) == sorted(tuple(dataset.src[i].tolist()) for i in range(len(dataset)))
    assert split == "val" or len(shares[0]) == len(shares[1])


def test_every_rank_has_something_to_validate_on(tmp_path: Path) -> None:
    """Lightning stops with an error where a rank has no batch, and a small validation set is one batch."""
    found = [len(make(tmp_path, world_size=3, rank=rank, tokens=1000).val_dataloader()) for rank in range(3)]
    assert found == [1, 1, 1]


def test_continues_from_the_restored_position(tmp_path: Path) -> None:
    trained = make(tmp_path)
    whole = rows(list(trained.train_dataloader()))
    trained.batches_trained = 2
    resumed = make(tmp_path)
    resumed.load_state_dict(trained.state_dict())
    loader = resumed.train_dataloader()
    rest = rows(list(loader))
    assert len(rest) < len(whole)
    assert rest == whole[-len(rest) :]


def test_refuses_a_checkpoint_of_other_data(tmp_path: Path) -> None:
    state = make(tmp_path).state_dict()
    (tmp_path / "other").mkdir()
    other = make(tmp_path / "other")
    src, _ = other.source.files(other.cache_dir)["train"]
    src.write_text(src.read_text().replace("dog", "dig", 1))
    with pytest.raises(CheckpointError, match="other data") as caught:
        other.load_state_dict(state)
    assert state["data_fingerprint"] in str(caught.value)
    assert other.prepared.fingerprint in str(caught.value)


def test_refuses_another_number_of_processes_within_an_epoch(tmp_path: Path) -> None:
    """Fault: a run is resumed with another number of processes.

    Effect: it continues if the checkpoint is from the end of an epoch, otherwise it is refused.
    """
    trained = make(tmp_path, world_size=2)
    epoch = len(list(trained.train_dataloader()))
    trained.batches_trained = epoch + 1
    with pytest.raises(CheckpointError, match=f"number of processes: found 1, expected 2, .*batch 1 of {epoch}"):
        make(tmp_path).load_state_dict(trained.state_dict())


def test_takes_another_number_of_processes_at_the_end_of_an_epoch(tmp_path: Path) -> None:
    trained, resumed = make(tmp_path, world_size=2), make(tmp_path)
    trained.batches_trained = 2 * len(list(trained.train_dataloader()))
    resumed.load_state_dict(trained.state_dict())
    third = rows(list(resumed.train_dataloader()))
    resumed.batches_trained = 2 * resumed.epoch_batches
    assert third == rows(list(resumed.train_dataloader()))
    resumed.batches_trained = 0
    assert sorted(third) == sorted(rows(list(resumed.train_dataloader())))


def test_other_batches_continue_at_the_same_share_of_the_epoch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trained, resumed = make(tmp_path, tokens=60), make(tmp_path, tokens=240)
    before = len(trained.train_dataloader())
    trained.batches_trained = before + before // 2
    resumed.load_state_dict(trained.state_dict())
    now = len(resumed.train_dataloader())
    assert now < before
    assert resumed.batches_trained == now + before // 2 * now // before
    assert f"an epoch has {now} batches, but had {before}" in caplog.text
    assert resumed.state_dict()["batches_trained"] == resumed.batches_trained


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"accumulate_grad_batches": 99, "max_epochs": 2},
            r"accumulate_grad_batches is 99, but an epoch has \d+ batches",
        ),
        ({"limit_train_batches": 0.001}, r"trainer.limit_train_batches is 0.001, less than one of \d+ batches"),
        ({"limit_val_batches": 0.001}, r"trainer.limit_val_batches is 0.001, less than one of \d+ batches"),
    ],
)
def test_limits_that_leave_nothing(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    data = make(tmp_path)
    vars(data.trainer).update(options)
    with pytest.raises(ConfigError, match=message):
        (data.train_dataloader(), data.val_dataloader())


def test_limits_are_named_as_they_were_given(tmp_path: Path) -> None:
    """A single process trains for 3 canonical ones, so the trainer's own numbers are 3 times as high."""
    data = make(tmp_path, canonical=3)
    vars(data.trainer).update(val_check_interval=3 * 99, accumulate_grad_batches=3, check_val_every_n_epoch=1)
    with pytest.raises(ConfigError, match=r"trainer.val_check_interval is 99, but an epoch has \d+ batches"):
        data.train_dataloader()


def test_what_ends_steps_early_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = make(tmp_path)
    batches = len(data.train_dataloader())
    caplog.set_level("INFO")
    vars(data.trainer).update(max_epochs=2, accumulate_grad_batches=batches - 1)
    assert len(data.train_dataloader()) == batches
    assert f"the last step of each epoch uses 1 batches, the others {batches - 1}" in caplog.text
    assert "trainer.max_epochs=2 ends the run after 4 steps, before the schedule's end" in caplog.text


def test_a_pair_beyond_the_budget_is_named_by_file_and_line(tmp_path: Path) -> None:
    """Fault: a sentence that is longer than a batch. Effect: an error with its file and line."""
    data = make(tmp_path, tokens=60)
    src, _ = data.source.files(data.cache_dir)["train"]
    lines = src.read_text().splitlines()
    lines[1] = ""  # dropped, and still counted
    lines[6] = "dog " * 30
    src.write_text("\n".join(lines) + "\n")
    with pytest.raises(CorpusError, match=rf"{src}:7 has \d+ tokens, more than batching.tokens=60"):
        data.train_dataloader()


def test_long_pairs_can_be_left_out(tmp_path: Path) -> None:
    data = make(tmp_path, max_length=20)
    lengths = [len(row) for row in rows(list(data.train_dataloader()))]
    assert 0 < len(lengths) < 60
    assert max(lengths) < 20  # EOS counts


def test_nothing_left_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no training pair is within batching\.max_length=2"):
        make(tmp_path, max_length=2).train_dataloader()


def test_lines_are_those_of_the_files(tmp_path: Path) -> None:
    data = make(tmp_path)
    sources, references = data.lines("val")
    assert len(sources) == len(references) == 8
    assert sources == (tmp_path / "val.en").read_text(encoding="utf-8").splitlines()


def test_an_unknown_split_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no split 'test', found train, val"):
        make(tmp_path).lines("test")


def epoch(data: ParallelDataModule, number: int = 0) -> list[list[Any]]:
    """The tokens of both sides of the batches of an epoch."""
    loader = data.train_dataloader()
    data.batches_trained += number * len(loader)
    return [[side.tolist() for side in batch[:2]] for batch in loader]


@pytest.mark.parametrize("num_workers", [1, 2])
def test_sampled_batches_do_not_depend_on_workers(tmp_path: Path, num_workers: int) -> None:
    here = [epoch(make(tmp_path, tokenizer=SAMPLED), number) for number in range(2)]
    there = [epoch(make(tmp_path, tokenizer=SAMPLED, num_workers=num_workers), number) for number in range(2)]
    assert here == there


def test_sampled_batches_continue_after_a_resume(tmp_path: Path) -> None:
    whole = epoch(make(tmp_path, tokenizer=SAMPLED), 3)
    stopped = make(tmp_path, tokenizer=SAMPLED)
    stopped.batches_trained = 3 * len(whole) + 2
    resumed = make(tmp_path, tokenizer=SAMPLED)
    resumed.load_state_dict(stopped.state_dict())
    assert epoch(resumed) == whole[2:]


def test_segmentations_are_fresh_in_each_epoch_and_for_each_seed(tmp_path: Path) -> None:
    data = make(tmp_path, tokenizer=SAMPLED)
    decode = data.prepared.src_tokenizer.decode
    sources = [
        {tuple(row) for side, _ in epoch(make(tmp_path, tokenizer=SAMPLED, seed=seed), number) for row in side}
        for seed, number in ((1, 0), (1, 1), (2, 0))
    ]
    texts = [{decode(row) for row in rows} for rows in sources]
    assert texts[0] == texts[1] == texts[2]
    for one, other in ((0, 1), (0, 2)):
        assert len(sources[one] - sources[other]) > 10


def test_ranks_sample_what_one_process_samples(tmp_path: Path) -> None:
    """A pair's segmentation is that of its epoch, whoever has it, so long as nothing is at the limit of its budget."""
    wide = {"tokens": 4000, "sentences": 5}
    alone = epoch(make(tmp_path, tokenizer=SAMPLED, **wide), 1)
    shared = [epoch(make(tmp_path, tokenizer=SAMPLED, world_size=2, rank=rank, **wide), 1) for rank in range(2)]
    for side in (0, 1):
        found = [
            sorted(tuple(t for t in row if t) for batch in batches for row in batch[side])
            for batches in (alone, [*shared[0], *shared[1]])
        ]
        assert found[0] == found[1]


def test_sampled_batches_stay_within_twice_the_budget(tmp_path: Path) -> None:
    budget = 60
    batches = [
        batch for number in range(4) for batch in epoch(make(tmp_path, tokenizer=SAMPLED, tokens=budget), number)
    ]
    assert max(len(src) * len(src[0]) for src, _ in batches) <= 2 * budget
    assert max(len(tgt) * (len(tgt[0]) - 1) for _, tgt in batches) <= 2 * budget


def test_validation_is_not_sampled(tmp_path: Path) -> None:
    data = make(tmp_path, tokenizer=SAMPLED)
    encode = data.prepared.src_tokenizer.encode
    assert sorted(rows(list(data.val_dataloader()))) == sorted(tuple(encode(line)) for line in data.lines("val")[0])


def test_sampling_does_not_change_what_is_prepared(tmp_path: Path) -> None:
    plain = TokenizerTrainer(kind="bpe", vocab_size=100)
    assert make(tmp_path, tokenizer=plain).prepared.folder == make(tmp_path, tokenizer=SAMPLED).prepared.folder


def test_sampling_does_not_change_the_size_of_batches(tmp_path: Path) -> None:
    plain = make(tmp_path, tokenizer=TokenizerTrainer(kind="bpe", vocab_size=100))
    sizes = [
        [len(batch.src_tokens) for batch in data.train_dataloader()]
        for data in (plain, make(tmp_path, tokenizer=SAMPLED))
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(("train", "val", "name"), [(2, 8, "2 training"), (60, 2, "2 validation")])
def test_fewer_sentences_than_processes_are_refused_before_others_start(
    tmp_path: Path, train: int, val: int, name: str
) -> None:
    """Fault: fewer sentences than processes. Effect: an error before any process is started."""
    data = make(tmp_path)
    data.source = write_corpus(tmp_path, train=train, val=val)
    data.check(2)
    with pytest.raises(CorpusError, match=f"{name} sentences cannot be shared among 3 processes; use fewer devices"):
        data.check(3)


def test_a_budget_too_small_is_refused_before_others_start(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"train\.en:\d+ has \d+ tokens, more than batching\.tokens=5"):
        make(tmp_path, tokens=5).check(1)


def several(folder: Path, **options: Any) -> ParallelDataModule:
    data = make(folder, tokens=200)
    corpora = [write_pair(folder, name, pairs, seed) for name, pairs, seed in (("big", 30, 1), ("small", 5, 2))]
    data.source = Parallel(train=corpora, val=write_pair(folder, "val", 8), **options)
    return data


def test_an_epoch_of_weighted_corpora_repeats_pairs_and_resumes(tmp_path: Path) -> None:
    data = several(tmp_path, weights=[1, 3])
    dataset = data.prepared.dataset("train")
    assert len(dataset) == 30 + 3 * 5
    whole = rows(list(data.train_dataloader()))
    assert sorted(whole) == sorted(tuple(dataset.src[i].tolist()) for i in range(45))
    data.batches_trained = 3
    resumed = several(tmp_path, weights=[1, 3])
    resumed.load_state_dict(data.state_dict())
    rest = rows(list(resumed.train_dataloader()))
    assert rest == whole[-len(rest) :]
    with pytest.raises(CheckpointError, match="other data"):
        several(tmp_path, weights=[1, 2]).load_state_dict(data.state_dict())


def test_a_pair_of_a_later_corpus_is_named_by_its_own_file(tmp_path: Path) -> None:
    data = several(tmp_path, weights=[0.5, 2])
    src, tgt = data.source.train_files(tmp_path)[1]
    src.write_text("dog\n" + "dog " * 60 + "\n")
    tgt.write_text("hund\nhund\n")
    with pytest.raises(CorpusError, match=rf"{src}:2 has 241 tokens"):
        data.train_dataloader()


def test_the_targets_of_training_are_those_of_its_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make(tmp_path, max_length=20)
    monkeypatch.setattr("softsearch.data.datamodule._SENTENCES", 3)
    ids, lengths = map(torch.cat, zip(*data.training_targets(), strict=True))
    pairs = data.prepared.dataset("train")
    longest = [max(len(side[i]) for side in (pairs.src, pairs.tgt)) for i in range(len(pairs))]
    expected = [pairs.tgt[i].tolist() for i, tokens in enumerate(longest) if tokens < 20]  # EOS counts
    assert 0 < len(expected) < len(pairs)
    assert [sentence.tolist() for sentence in ids.split(lengths.tolist())] == expected
