"""``init=RUN`` and its options: new runs that start from the weights of another run."""

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
from softsearch.app.train.model import describe_model
from softsearch.app.train.start import Fresh, NewModel
from softsearch.data.existing_tokenizers import ExistingTokenizers, TokenizerMaker, sources_of_rows
from softsearch.data.tokenizer_files import from_files
from softsearch.errors import CheckpointError, ConfigError
from softsearch.models.seq2seq import Seq2Seq
from softsearch.text.languages import languages_of
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers, TokenizerTrainer
from softsearch.text.vocabulary import SPECIALS
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents, read_contents

log = logging.getLogger(__name__)
_TRAINING_ONLY = {"init", "dropout", "sparse"}  # words in names of model options that do not affect the weights
Describe = Callable[[int, int], Seq2Seq]  # (source, target vocabulary size) -> the model on the meta device


class Adapted(Fresh):
    """A new run that starts from the weights of another run, ``init``."""

    def __init__(self, options: Train) -> None:
        super().__init__(options)
        assert options.init.ckpt is not None
        self.contents = contents_of_init(options.init.ckpt)

    def tokenizers(self) -> TokenizerMaker:
        """Returns those of the other run, grown or not, or a trainer of new ones."""
        return tokenizer_maker(self.options, self.contents)

    def fill(self, new: NewModel) -> None:
        start_from(self.contents, new, options=self.options.init, describe=partial(describe_model, self.options))


def check_init(options: Train) -> None:
    """Checks that weights may come from ``init``.

    Raises:
        ConfigError: the run resumes another, or its embeddings come from other files.
    """
    if isinstance(options.resume, Path):
        raise ConfigError(
            f"init={options.init.ckpt} starts a new run, but resume={options.resume} continues one with its own "
            "weights; remove one of them (resume=auto continues the new run)"
        )
    for side in ("src", "tgt"):
        if (vectors := getattr(options.vectors, side)) is not None:
            raise ConfigError(
                f"init={options.init.ckpt} has embeddings, but vectors.{side}={vectors} would replace them; remove "
                "one of them"
            )


def tokenizer_maker(
    options: Train, init: CheckpointContents | None = None, resumed: Path | None = None
) -> TokenizerMaker:
    """Returns where the run's tokenizers come from: a trainer, or the checkpoint that the run starts from.

    A run that continues from ``resumed`` keeps the tokenizers in it; to grow them again it needs ``init``.

    Raises:
        CheckpointError: a checkpoint cannot be read.
    """
    trainer: TokenizerTrainer = build(options.tokenizer)
    path, vocabulary = options.init.ckpt, options.init.vocabulary
    if init is not None and vocabulary != "keep" and languages_of(init.tokenizers[0]).starts:
        raise ConfigError(
            f"init.vocabulary is {vocabulary}, but init={path} finds its languages by their places in its vocabulary, "
            "so it must stay; remove init.vocabulary"
        )
    if path is None or vocabulary == "own":
        return from_files(trainer)
    if (file := trainer.model or trainer.vocabulary) is not None:
        raise ConfigError(
            f"init={path} has tokenizers, but tokenizer.model or tokenizer.vocabulary is {file}; remove that "
            "option, or set init.vocabulary=own"
        )
    contents = init or (read_contents(resumed) if resumed and vocabulary == "keep" else contents_of_init(path))
    src, tgt = contents.tokenizers
    grow = trainer if vocabulary == "grow" else None
    return ExistingTokenizers(
        models=(src.model, tgt.model), origin=f"init={path}", sampling=trainer.sampling, grow=grow
    )


def start_from(init: CheckpointContents, new: NewModel, *, options: Init, describe: Describe) -> None:
    """Loads the weights of ``init``, without its training state, into a new model.

    A piece that is not in the checkpoint's vocabulary starts as the mean of the pieces that spelled it (``grow``) or at
    random (``own``).

    Args:
        init: the checkpoint to start from.
        new: the new model.
        options: what to take from the checkpoint.
        describe: makes the model without allocating weights, to see which of them depend on a vocabulary.

    Raises:
        CheckpointError: the checkpoint's vocabularies, model or weights do not match this run.
        ConfigError: there is no such part.
    """
    model, node, tokenizers = new.model, new.node, new.tokenizers
    for side, there, here in zip(("source", "target"), init.tokenizers, tokenizers, strict=True):
        is_other = there.fingerprint != here.fingerprint if options.vocabulary == "keep" else False
        if is_other or there.reverse != here.reverse:
            raise CheckpointError(
                f"init={init.path} has another {side} vocabulary: {_describe(there)} there, but {_describe(here)} in "
                "this run's data; set data.reverse_source and data.target_direction as in that run, or "
                "init.vocabulary=own"
            )
    if options.parts is None and (different := list(differences(init.config["model"], node, "model"))):
        lines = [f"init={init.path} is another model:", *(f"  {line}" for line in different)]
        lines += ["set the same options as in that run's config.yaml, or replace model= and experiment= with:"]
        lines += [f"  init={init.path}    (for that run's model)"]
        if same := ",".join(_same_parts(init, model)):
            lines += ["or, with them:", f"  init={init.path} init.parts='[{same}]'    (for the parts that match)"]
        raise CheckpointError("\n".join(lines))
    log.info("starting from the weights of %s", init.describe())
    if options.parts is None and options.vocabulary == "keep":
        with_weights(model, init).train()
    else:
        _take(init, model, tokenizers, options, describe)


def _same_parts(init: CheckpointContents, model: Seq2Seq) -> list[str]:
    """Returns the parts of a model whose weights have the same shapes in the checkpoint."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    shapes = {name: weight.shape for name, weight in init.weights.items()}
    parts = model.parts().items()
    return [part for part, group in parts if group and all(shapes.get(names[p]) == p.shape for p in group)]


@torch.no_grad()
def _take(init: CheckpointContents, model: Seq2Seq, tokenizers: Tokenizers, options: Init, describe: Describe) -> None:
    """Copies weights of the chosen parts, those per word row by row, and logs what was and what was not taken."""
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
                f"init={init.path}: {name} is {there} there, expected {tuple(expected)}; remove its part from "
                "init.parts, or set the model's options as in that run's config.yaml"
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
        log.info(
            "%d of %d weights start at random, because init.parts does not include them", left, len(model.state_dict())
        )


def _sides(describe: Describe, tokenizers: Tokenizers) -> dict[str, int]:
    """Returns the names of weights with a row per vocabulary entry: 0 means the source's vocabulary, 1 the target's."""
    src, tgt = (tokenizer.vocab_size for tokenizer in tokenizers)
    is_joint = tokenizers[0].model == tokenizers[1].model
    more = (
        [(src + 64, tgt + 64)] if is_joint else [(src + 64, tgt), (src, tgt + 64)]
    )  # 64 more, because a class has several words
    shapes = _shapes(describe(src, tgt))
    changed = (_shapes(describe(*sizes)) for sizes in more)
    return {name: side for side, others in enumerate(changed) for name in shapes if others[name] != shapes[name]}


def _shapes(model: Seq2Seq) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in model.state_dict().items()}


def differences(there: Any, here: Any, path: str) -> Iterator[str]:
    """Yields the options that differ between two nodes; an option missing on one side has its default there."""
    if not isinstance(there, Mapping) or not isinstance(here, Mapping):
        if there != here:
            yield f"{path} is {there!r:.80} there, {here!r:.80} here"
        return
    if there.get("_target_") != here.get("_target_"):
        yield f"{path} is {there.get('_target_')!r:.80} there, {here.get('_target_')!r:.80} here"
        return
    defaults: dict[str, Any] = {}
    if "_target_" in here:  # named by this run's own config, so it may be imported
        parameters = inspect.signature(target_of(here, path)).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    for key in sorted({*there, *here}):
        if _TRAINING_ONLY & {*key.split("_")}:
            continue
        before, now = (side.get(key, defaults.get(key)) for side in (there, here))
        yield from differences(before, now, f"{path}.{key}")


def _describe(tokenizer: SentencePieceTokenizer) -> str:
    return f"{tokenizer.vocab_size:,} pieces" + ", reversed" * tokenizer.reverse
