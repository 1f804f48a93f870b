"""Starting weights of a new run from another one: ``init=RUN`` and its options."""

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from softsearch.app.config.build import with_weights
from softsearch.app.config.composition import contents_of_init
from softsearch.app.config.options import Init, Train
from softsearch.app.config.validation import build, nearest, target_of
from softsearch.app.train.parts import describe_model
from softsearch.app.train.start import Fresh
from softsearch.data.datamodule import ParallelDataModule
from softsearch.data.existing_tokenizers import ExistingTokenizers, TokenizerMaker, sources_of_rows
from softsearch.data.tokenizer_files import from_files
from softsearch.errors import CheckpointError, ConfigError
from softsearch.models.interface import Seq2Seq
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers, TokenizerTrainer
from softsearch.text.vocabulary import SPECIALS
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents, read_contents

log = logging.getLogger(__name__)
_TRAINING_ONLY = {"init", "dropout", "sparse"}  # words in names of a model's options that its weights do not need
Describe = Callable[[int, int], Seq2Seq]  # the model on the meta device, by sizes of both vocabularies


class Adapted(Fresh):
    """A new run that starts from the weights of another one, ``init``."""

    def __init__(self, options: Train) -> None:
        super().__init__(options)
        assert options.init.ckpt is not None
        self.contents = contents_of_init(options.init.ckpt)

    def tokenizers(self) -> TokenizerMaker:
        """Those of the other run, grown or not, or own ones."""
        return tokenizer_maker(self.options, self.contents)

    def _fill(self, model: Seq2Seq, data: ParallelDataModule, node: Mapping[str, Any]) -> None:
        describe = partial(describe_model, self.options)
        start_from(self.contents, model, node, data.tokenizers, options=self.options.init, describe=describe)


def check_init(options: Train) -> None:
    """Checks that weights may come from ``init``.

    Raises:
        ConfigError: the run continues another, or its embeddings come from elsewhere.
    """
    if isinstance(options.resume, Path):
        raise ConfigError(
            f"init={options.init.ckpt} starts a new run, but resume={options.resume} continues one with that one's "
            "weights; leave one of them out (resume=auto continues the new run)"
        )
    for side in ("src", "tgt"):
        if (vectors := getattr(options.vectors, side)) is not None:
            raise ConfigError(
                f"init={options.init.ckpt} has embeddings, but vectors.{side}={vectors} would replace them; leave one "
                "out"
            )


def tokenizer_maker(
    options: Train, init: CheckpointContents | None = None, resumed: Path | None = None
) -> TokenizerMaker:
    """What the run's tokenizers come from: a trainer, or the checkpoint that it starts from.

    A run that goes on from ``resumed`` has those to keep there; to grow again it needs the first checkpoint.

    Raises:
        CheckpointError: a checkpoint cannot be read.
    """
    trainer: TokenizerTrainer = build(options.tokenizer)
    path, vocabulary = options.init.ckpt, options.init.vocabulary
    if path is None or vocabulary == "own":
        return from_files(trainer)
    if (file := trainer.model or trainer.vocabulary) is not None:
        raise ConfigError(
            f"init={path} brings its tokenizers, but tokenizer.model or tokenizer.vocabulary is {file}; leave it "
            "out, or set init.vocabulary=own"
        )
    contents = init or (read_contents(resumed) if resumed and vocabulary == "keep" else contents_of_init(path))
    src, tgt = contents.tokenizers
    grow = trainer if vocabulary == "grow" else None
    return ExistingTokenizers(
        models=(src.model, tgt.model), origin=f"init={path}", sampling=trainer.sampling, grow=grow
    )


def start_from(
    init: CheckpointContents,
    model: Seq2Seq,
    node: Mapping[str, Any],
    tokenizers: Tokenizers,
    *,
    options: Init,
    describe: Describe,
) -> None:
    """Loads weights of ``init``, without the state of its training, into a new model.

    A piece that the checkpoint's vocabulary lacks starts as the mean of those that spelled it (``grow``), or as it was
    drawn (``own``).

    Args:
        init: the checkpoint.
        model: the new model, in training mode.
        node: the resolved config of the new model.
        tokenizers: of the new run's data.
        options: what is taken.
        describe: makes the model without memory, to see which weights depend on a vocabulary.

    Raises:
        CheckpointError: the checkpoint's vocabularies, model or weights are not those of this run.
        ConfigError: there is no such part.
    """
    for side, there, here in zip(("source", "target"), init.tokenizers, tokenizers, strict=True):
        is_other = there.fingerprint != here.fingerprint if options.vocabulary == "keep" else False
        if is_other or there.reverse != here.reverse:
            raise CheckpointError(
                f"init={init.path} has another {side} vocabulary: {_describe(there)} there, {_describe(here)} in this "
                "run's data; set data.reverse_source and data.target_direction as in that run, or init.vocabulary=own"
            )
    if options.parts is None and (different := list(differences(init.config["model"], node, "model"))):
        lines = [f"init={init.path} is another model:", *(f"  {line}" for line in different)]
        lines += ["set the same options, as in that run's config.yaml, or type, in place of model= and experiment=:"]
        lines += [f"  init={init.path}    (for that run's model)"]
        if same := ",".join(_same_parts(init, model)):
            lines += [
                "or, with them:",
                f"  init={init.path} init.parts='[{same}]'    (for the parts that are the same)",
            ]
        raise CheckpointError("\n".join(lines))
    log.info("starting from the weights of %s", init.describe())
    if options.parts is None and options.vocabulary == "keep":
        with_weights(model, init).train()
    else:
        _take(init, model, tokenizers, options, describe)


def _same_parts(init: CheckpointContents, model: Seq2Seq) -> list[str]:
    """The parts of a model whose weights the checkpoint has in the same shapes."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    shapes = {name: weight.shape for name, weight in init.weights.items()}
    parts = model.parts().items()
    return [part for part, group in parts if group and all(shapes.get(names[p]) == p.shape for p in group)]


@torch.no_grad()
def _take(init: CheckpointContents, model: Seq2Seq, tokenizers: Tokenizers, options: Init, describe: Describe) -> None:
    """Copies weights of the chosen parts, those by word row by row, and logs what was taken and what was not."""
    rows = []
    for side, old, new in zip(("source", "target"), init.tokenizers, tokenizers, strict=True):
        rows.append(sources_of_rows(old, new, spell=options.vocabulary == "grow", name=f"init={init.path}"))
        known = old.vocabulary()
        pieces = zip(new.vocabulary(), rows[-1][len(SPECIALS) :], strict=True)
        added = [bool(ids) for piece, ids in pieces if piece not in known]
        log.info(
            "%s vocabulary of %s entries: %s rows taken from the checkpoint, %s new ones set to the mean of their "
            "pieces, %s drawn at random; %s of the checkpoint dropped",
            *(side, f"{new.vocab_size:,}"),
            *(f"{n:,}" if n else "none" for n in (new.vocab_size - len(added), sum(added), added.count(False))),
            f"{dropped:,}" if (dropped := len(set(old.vocabulary()) - set(new.vocabulary()))) else "none",
        )
    by_vocabulary = _sides(describe, tokenizers)
    parts, part_of = model.parts(), {p: part for part, group in model.parts().items() for p in group}
    for part in options.parts or ():
        if part not in parts:
            raise ConfigError(f"init.parts has {part!r}, which is not a part of this model; {nearest(part, parts)}")
    named = dict(model.named_parameters(remove_duplicate=False))
    left = 0
    for name, weight in model.state_dict().items():
        if options.parts is not None and (name not in named or part_of[named[name]] not in options.parts):
            left += 1
            continue
        side_of, saved = by_vocabulary.get(name), init.weights.get(name)
        expected = list(weight.shape)
        if side_of is not None:
            expected[0] = init.tokenizers[side_of].vocab_size
        if saved is None or list(saved.shape) != expected:
            there = "missing" if saved is None else tuple(saved.shape)
            raise CheckpointError(
                f"init={init.path}: {name} is {there} there, {tuple(expected)} expected; leave its part out of "
                "init.parts, or set the options of the model as in that run's config.yaml"
            )
        if side_of is None:
            weight.copy_(saved)
            continue
        for row, sources in enumerate(rows[side_of]):
            if sources:
                weight[row] = saved[sources].mean(0)
    before = sum(
        p.numel() // p.shape[0] * init.tokenizers[by_vocabulary[name]].vocab_size
        if name in by_vocabulary
        else p.numel()
        for name, p in model.named_parameters()
    )
    log.info(
        "%s parameters in the checkpoint, %s now", f"{before:,}", f"{sum(p.numel() for p in model.parameters()):,}"
    )
    if left:
        log.info("%d of %d weights are as drawn, because init.parts leaves them out", left, len(model.state_dict()))


def _sides(describe: Describe, tokenizers: Tokenizers) -> dict[str, int]:
    """The weights with a row for each entry of a vocabulary by name: 0 for that of the source, 1 of the target."""
    src, tgt = (tokenizer.vocab_size for tokenizer in tokenizers)
    is_joint = tokenizers[0].model == tokenizers[1].model
    more = [(src + 64, tgt + 64)] if is_joint else [(src + 64, tgt), (src, tgt + 64)]  # classes are of several words
    shapes = _shapes(describe(src, tgt))
    changed = (_shapes(describe(*sizes)) for sizes in more)
    return {name: side for side, others in enumerate(changed) for name in shapes if others[name] != shapes[name]}


def _shapes(model: Seq2Seq) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in model.state_dict().items()}


def differences(there: Any, here: Any, path: str) -> Iterator[str]:
    """Yields the options of two nodes that differ; one that a side lacks, as an older checkpoint, has its default."""
    if not isinstance(there, Mapping) or not isinstance(here, Mapping):
        if there != here:
            yield f"{path} is {there!r:.80} there, {here!r:.80} here"
        return
    if there.get("_target_") != here.get("_target_"):
        yield f"{path} is {there.get('_target_')!r:.80} there, {here.get('_target_')!r:.80} here"
        return
    defaults: dict[str, Any] = {}
    if "_target_" in here:  # this run's own config names it, so it may be imported
        parameters = inspect.signature(target_of(here, path)).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    for key in sorted({*there, *here}):
        if _TRAINING_ONLY & {*key.split("_")}:
            continue
        before, now = (side.get(key, defaults.get(key)) for side in (there, here))
        yield from differences(before, now, f"{path}.{key}")


def _describe(tokenizer: SentencePieceTokenizer) -> str:
    return f"{tokenizer.vocab_size:,} pieces" + ", reversed" * tokenizer.reverse
