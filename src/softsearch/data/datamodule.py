"""LightningDataModule for any parallel source: prepares it, serves token-budget batches and resumes anywhere."""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from lightning import LightningDataModule
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader

from softsearch.data.corpora.base import ParallelSource
from softsearch.data.dataset import Batch, NoisyText, ParallelDataset, Redraw, Resampler
from softsearch.data.existing_tokenizers import TokenizerMaker
from softsearch.data.preparation.prepare import prepare
from softsearch.data.preparation.prepared import PreparedData
from softsearch.data.sampler import Batching, BucketBatchSampler, Indices, Shard, divide, pairs_of_shard, shards_of
from softsearch.errors import CheckpointError, ConfigError, CorpusError
from softsearch.text.corpus import read_lines
from softsearch.text.noise import NO_NOISE, Noise
from softsearch.text.subword_sampling import SubwordSampler
from softsearch.text.tokenizer import Tokenizers
from softsearch.text.vocabulary import SOURCE_SEPARATOR

_SENTENCES = 50_000  # whose targets are in memory at a time
log = logging.getLogger(__name__)


class ParallelDataModule(LightningDataModule):
    """Prepares a parallel corpus in ``cache_dir`` and serves it in batches; ``seed`` determines the training order.

    Raises:
        ConfigError: the ``noise`` does not fit the text.
    """

    def __init__(
        self,
        *,
        source: ParallelSource,
        tokenizer: TokenizerMaker,
        batching: Batching,
        cache_dir: str | Path,
        seed: int,
        noise: Noise = NO_NOISE,
    ) -> None:
        super().__init__()
        _check_noise(noise, source)
        self.noise = noise
        self.source, self.tokenizer_trainer, self.batching = source, tokenizer, batching
        self.cache_dir, self.seed = Path(cache_dir), seed
        self.batches_trained = 0  # per rank, in the whole run; counted by ExactResume
        self.epoch_batches = 0  # per rank; set by train_dataloader
        self._saved_epoch = 0  # epoch_batches of the checkpoint, which may have used other batches or processes

    def prepare_data(self) -> None:
        """Downloads, generates and encodes missing data; Lightning calls it in only one process."""
        _ = self.prepared

    @cached_property  # hashing a large corpus takes time
    def prepared(self) -> PreparedData:
        """Tokenizers and token ids."""
        return prepare(self.source, self.tokenizer_trainer, self.cache_dir, noise=self.noise)

    @property
    def tokenizers(self) -> Tokenizers:
        """The tokenizers of source and target."""
        return self.prepared.src_tokenizer, self.prepared.tgt_tokenizer

    def lines(self, split: str) -> tuple[list[str], list[str]]:
        """Returns the source and target lines of ``split``, as in the files.

        Raises:
            CorpusError: the data has no such split.
        """
        files = self.source.files(self.cache_dir)
        if split not in files:
            raise CorpusError(
                f"the data has no split {split!r}, found {', '.join(files)}; set data.{split} or choose one"
            )
        src, tgt = files[split]
        return list(read_lines(src)), list(read_lines(tgt))

    def check(self, world_size: int) -> None:
        """Checks, before other processes start, that all will have training and validation batches.

        Raises:
            CorpusError: there are fewer sentences than processes, or one does not fit into a batch.
        """
        train, val = self.prepared.dataset("train"), self.prepared.dataset("val")
        shards = shards_of(len(train))
        chosen = sum(len(self._known_lengths(train, number, shards)[0]) for number in range(shards))
        for name, pairs in (("training", chosen), ("validation", len(val))):
            if pairs < world_size:
                raise CorpusError(
                    f"{pairs} {name} sentences cannot be shared among {world_size} processes; "
                    "use fewer devices (trainer.devices) or more data"
                )

    def training_targets(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yields the targets of some training pairs at a time, as stored: ids without specials, and lengths."""
        train = self.prepared.dataset("train")
        shards = shards_of(len(train))
        for number in range(shards):
            chosen = self._chosen(train, number, shards)
            if train.shards is not None:
                train.shards.turn(number, min(number + 1, shards - 1))
            for begin in range(0, len(chosen), _SENTENCES):
                some = chosen[begin : begin + _SENTENCES]
                arrays = train.tgt.gather(some), train.tgt.lengths(some) - 1
                ids, lengths = (torch.from_numpy(array.astype(np.int64)) for array in arrays)
                yield ids, lengths

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Yields the training batches of an epoch, numbered from 0, in the order of one process without Lightning."""
        dataset = self.prepared.dataset("train")
        lengths = dataset.src.lengths(), dataset.tgt.lengths()
        for indices in Shard(self.batching.cut(*lengths), *lengths, seed=(self.seed,)).plan(epoch):
            yield dataset.__getitems__(indices.tolist())

    def train_dataloader(self) -> DataLoader[Batch]:
        """Returns this rank's share of the remaining training batches.

        Raises:
            ConfigError: an epoch has fewer batches than ``trainer.val_check_interval`` or a step.
        """
        dataset = self.prepared.dataset("train", self._redraw())
        trainer = self.trainer
        assert trainer is not None
        shards = 1 if self.batching.batches is not None else shards_of(len(dataset))
        sampler = BucketBatchSampler(
            lambda number: self._shard(dataset, number, shards),
            shards,
            len(dataset),
            position=lambda: self.batches_trained,
            seed=self.seed,
            rank=trainer.global_rank,
            outline=None if dataset.shards is None else lambda number: self._outline(dataset, number, shards),
            turn=None if dataset.shards is None else dataset.shards.turn,
            window=1 if _counts_epochs(trainer) else trainer.accumulate_grad_batches,
            share=self.batching.share(trainer.world_size),
        )
        if (longest := self.batching.max_length) is not None:
            log.info("left out %d pairs longer than %d tokens", len(dataset) - sampler.pairs, longest)
        self.epoch_batches = sampler.epoch
        _check_limits(trainer, sampler.epoch, self.batching.share(trainer.world_size))
        if self._saved_epoch not in (0, sampler.epoch):
            epochs, begun = divmod(self.batches_trained, self._saved_epoch)
            self.batches_trained = epochs * sampler.epoch + begun * sampler.epoch // self._saved_epoch
            if begun:
                log.warning(
                    "an epoch has %d batches, but had %d when the checkpoint was saved: it goes on at the same share, "
                    "%.0f %%, so some pairs are seen twice in it, and others not at all",
                    *(sampler.epoch, self._saved_epoch, 100 * begun / self._saved_epoch),
                )
        self._saved_epoch = 0
        log.info(
            "training on %s pairs in %d batches per process; %.1f %% of source and %.1f %% of target tokens are real",
            f"{sampler.pairs:,}",
            sampler.epoch,
            *(100 * sampler.tokens[:, 0] / sampler.tokens[:, 1]).tolist(),
        )
        return self._loader(dataset, sampler)

    def val_dataloader(self) -> DataLoader[Batch]:
        """Returns this rank's share of the validation batches."""
        dataset = self.prepared.dataset("val")
        trainer = self.trainer
        assert trainer is not None
        # Lightning raises an error for a rank without batches.
        batches = divide(self.batching.cut(dataset.src.lengths(), dataset.tgt.lengths()), trainer.world_size)
        own = [batch.tolist() for batch in batches[trainer.global_rank :: trainer.world_size]]
        _check_share("limit_val_batches", trainer.limit_val_batches, len(own))
        return self._loader(dataset, own)

    def state_dict(self) -> dict[str, Any]:
        """Returns the position in training, the data and the number of processes."""
        return {
            "batches_trained": self.batches_trained,
            "epoch_batches": self.epoch_batches,
            "world_size": self.trainer.world_size if self.trainer else 1,
            "canonical": self.batching.canonical,
            "data_fingerprint": self.prepared.fingerprint,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from a checkpoint; with other processes than ``canonical`` allows, only from an epoch's end.

        Raises:
            CheckpointError: the data or the number of processes has changed.
        """
        here = self.state_dict()
        self.batches_trained = state_dict["batches_trained"]
        advice = "resume with the configuration of the run, or start a new run with resume=null"
        if state_dict["data_fingerprint"] != here["data_fingerprint"]:
            raise CheckpointError(
                f"the checkpoint was trained on other data: found {here['data_fingerprint']}, expected "
                f"{state_dict['data_fingerprint']}; {advice}; with a number as data.val or data.test, softsearch 0.2 "
                "and older split other pairs off: resume with the version that began the run"
            )
        self._saved_epoch = epoch = state_dict["epoch_batches"]
        before, now, canonical = state_dict["world_size"], here["world_size"], here["canonical"]
        if canonical and canonical == state_dict.get("canonical"):
            self.batches_trained = self.batches_trained * before // now
            self._saved_epoch = epoch * before // now
        elif before != now and (begun := self.batches_trained % epoch):
            raise CheckpointError(
                "the checkpoint was trained with a different number of processes: "
                f"found {now}, expected {before}, and its epoch has not ended (batch {begun} of {epoch}); {advice}; "
                "runs with batching.canonical=N resume with any divisor of N"
            )

    def _shard(self, dataset: ParallelDataset, number: int, shards: int) -> tuple[Shard, Indices]:
        """Returns batches of the shard's pairs within ``batching.max_length``, based on stored segmentations."""
        pairs = self._chosen(dataset, number, shards)
        return self._plan(number, shards, dataset.src.lengths(pairs), dataset.tgt.lengths(pairs)), pairs

    def _outline(self, dataset: ParallelDataset, number: int, shards: int) -> Shard:
        """Returns batches of the same sizes as those of ``_shard``."""
        return self._plan(number, shards, *self._known_lengths(dataset, number, shards))

    def _plan(self, number: int, shards: int, src: Indices, tgt: Indices) -> Shard:
        seed = (self.seed,) if shards == 1 else (self.seed, number)
        world_size = self.batching.canonical or (self.trainer.world_size if self.trainer else 1)
        batches = self.batching.subset(self.batching.cut(src, tgt))
        return Shard(batches, src, tgt, seed=seed, world_size=world_size)

    def _known_lengths(self, dataset: ParallelDataset, number: int, shards: int) -> tuple[Indices, Indices]:
        """Returns the lengths of a shard's chosen pairs, in any order: those of a store are in its list."""
        stored = dataset.shards
        if stored is None or len(stored) != shards:
            pairs = self._chosen(dataset, number, shards)
            return dataset.src.lengths(pairs), dataset.tgt.lengths(pairs)
        src, tgt = stored.lengths(number)
        within = self._within(np.maximum(src, tgt), lambda _: f"a pair of {stored.store.address}")
        return src[within], tgt[within]

    def _chosen(self, dataset: ParallelDataset, number: int = 0, shards: int = 1) -> Indices:
        """Returns the indices of a shard's training pairs within ``batching.max_length``.

        Raises:
            CorpusError: a sentence does not fit into a batch, or no pair is left.
        """
        pairs = pairs_of_shard(len(dataset), number, shards)
        longest = np.maximum(dataset.src.lengths(pairs), dataset.tgt.lengths(pairs))
        return pairs[self._within(longest, lambda place: self.prepared.describe("train", int(pairs[place])))]

    def _within(self, longest: Indices, locate: Callable[[int], str]) -> NDArray[np.bool_] | slice:
        """Returns which pairs are within ``batching.max_length``, by the longer side of each; raises as ``_chosen``."""
        within: NDArray[np.bool_] | slice = slice(None)
        if self.batching.max_length is not None:
            within = longest <= self.batching.max_length
            longest = np.where(within, longest, 0)
        worst = int(longest.argmax())
        if not longest[worst]:
            raise CorpusError(f"no training pair is within batching.max_length={self.batching.max_length}; raise it")
        if longest[worst] > self.batching.tokens:
            raise CorpusError(
                f"{locate(worst)} has {longest[worst]} tokens, more than "
                f"batching.tokens={self.batching.tokens}; raise batching.tokens, or leave such pairs out with "
                "batching.max_length=N"
            )
        return within

    def _redraw(self) -> Redraw | None:
        """Returns the function that draws noise and new segmentations in every epoch; None if neither is on."""
        trainer, tokenizers = self.tokenizer_trainer, self.tokenizers
        tokens, sampler = self.batching.tokens, None
        if trainer.sampling:
            sides = zip(tokenizers, trainer.kinds, strict=True)
            src, tgt = (SubwordSampler(tokenizer, kind, trainer.sampling) for tokenizer, kind in sides)
            sampler = Resampler((src, tgt), tokens=tokens, seed=self.seed)
        if not self.noise.is_on:
            return sampler
        return NoisyText(self.noise, tokenizers, tokens=tokens, seed=self.seed, then=sampler)

    def _loader(self, dataset: ParallelDataset, batches: Sequence[list[int]] | BucketBatchSampler) -> DataLoader[Batch]:
        # Lightning rebuilds neither a list nor a custom sampler for several processes.
        return DataLoader(
            dataset,  # type: ignore[arg-type]  # returns whole batches by __getitems__
            batch_sampler=batches,
            collate_fn=Batch._make,  # it is already a batch
            num_workers=self.batching.num_workers,
            pin_memory=self.trainer is not None and self.trainer.strategy.root_device.type == "cuda",
        )


def _counts_epochs(trainer: lightning.Trainer) -> bool:
    """Tells whether an option counts epochs or is a share of one, so that an epoch's end may cut a step short."""
    by_epoch = trainer.check_val_every_n_epoch is not None or isinstance(trainer.val_check_interval, float)
    return by_epoch or trainer.limit_train_batches != 1.0 or trainer.max_epochs not in (None, -1)


def _check_limits(trainer: lightning.Trainer, epoch: int, share: int) -> None:
    """Checks the options that depend on the number of batches in an epoch, and logs their effect.

    All are counted as the user counts: in batches of a canonical process, ``share`` of which one process trains for.
    """
    interval, window, limit = (
        value // share if isinstance(value, int) else value
        for value in (trainer.val_check_interval, trainer.accumulate_grad_batches, trainer.limit_train_batches)
    )
    epoch //= share
    if trainer.check_val_every_n_epoch is not None and isinstance(interval, int) and interval > epoch:
        raise ConfigError(
            f"trainer.val_check_interval is {interval}, but an epoch has {epoch} batches, and with "
            f"trainer.check_val_every_n_epoch={trainer.check_val_every_n_epoch} they are counted per epoch; set that "
            "to null, or the interval to 1.0 for the end of an epoch"
        )
    _check_share("limit_train_batches", limit, epoch)
    taken = min(limit, epoch) if isinstance(limit, int) else int(limit * epoch)
    if _counts_epochs(trainer) and taken:
        if window > taken:
            raise ConfigError(
                f"trainer.accumulate_grad_batches is {window}, but an epoch has {taken} batches, and "
                "trainer.max_epochs, limit_train_batches or validations by epoch end a step with it; set it to "
                f"{taken} or less"
            )
        if taken % window:
            log.info("the last step of each epoch uses %d batches, the others %d", taken % window, window)
    steps = -(-taken // window) * (trainer.max_epochs or 0)
    if 0 < steps < trainer.max_steps:
        log.warning(
            "trainer.max_epochs=%d ends the run after %s steps, before the schedule's end at trainer.max_steps=%s; set "
            "trainer.max_steps=%d",
            *(trainer.max_epochs, f"{steps:,}", f"{trainer.max_steps:,}", steps),
        )


def _check_share(name: str, limit: object, batches: int) -> None:
    if isinstance(limit, float) and limit > 0 and not int(limit * batches):
        raise ConfigError(
            f"trainer.{name} is {limit}, less than one of {batches} batches; set a number of batches, such as "
            f"trainer.{name}=1 (debug=overfit and debug=fast are short runs)"
        )


def _check_noise(noise: Noise, source: ParallelSource) -> None:
    if noise.is_on and (source.has_features or SOURCE_SEPARATOR in source.tags):
        raise ConfigError("noise needs data with one source text, not features or several sources; set noise=none")
    if source.text_form == "lc_tok" and (noise.upper or noise.title):
        raise ConfigError(
            f"noise.upper is {noise.upper:g} and noise.title {noise.title:g}, but the data's text is lower-cased "
            "(lc_tok), as users' text will be; set both to 0, or use cased text"
        )
