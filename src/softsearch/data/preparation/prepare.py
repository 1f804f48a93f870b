"""Preparation of text files as token ids on disk: in parts, each once, never half-written, with bounded memory."""

from dataclasses import replace
from pathlib import Path

from softsearch.data.corpora.base import ParallelSource
from softsearch.data.existing_tokenizers import TokenizerMaker, reads_text
from softsearch.data.preparation.inputs import Inputs, Progress
from softsearch.data.preparation.prepared import PreparedData, StoredData, is_intact, read_tokenizers
from softsearch.data.preparation.store import Store
from softsearch.data.sentencepiece_file import digest_of_pieces
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.form_check import form_problems, head, reference_problems
from softsearch.text.noise import NO_NOISE, Noise
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers


def prepare(
    source: ParallelSource,
    trainer: TokenizerMaker,
    cache_dir: Path,
    *,
    processes: int = 1,
    progress: Progress | None = None,
    noise: Noise = NO_NOISE,
) -> PreparedData:
    """Makes the tokenizers, usually trained on the training side, and encodes all splits, unless they are in the cache.

    Validation and test keep every line, so that outputs stay aligned with the files; training drops pairs with an empty
    side and those that the source's filters drop. Several processes may call this: one prepares and the others wait.
    Cleaned text, tokenizers and ids are kept in parts (ADR 0049), so that only what is missing is made. Existing data
    is checked (see ``softsearch.data.preparation.cache_folder``) and prepared again if damaged. The result does not
    depend on ``processes``. Tokenizers are also trained on text in the cases of ``noise``. By default, progress is
    logged every 10 seconds.

    Raises:
        CorpusError: a file is missing, damaged or not parallel, or the disk is full.
    """
    prepared: PreparedData
    if isinstance(source.prepared, Store):
        folder = source.prepared.folder(cache_dir)
        tokenizers = _given_tokenizers(folder, source, trainer)
        return StoredData(folder, *tokenizers, store=source.prepared, cache_dir=cache_dir)
    if source.prepared is not None:
        prepared = PreparedData(source.prepared, *_given_tokenizers(source.prepared, source, trainer))
    else:
        inputs = Inputs(source, trainer, cache_dir, noise)
        if not is_intact(inputs.folder):
            from softsearch.data.preparation.steps import make_all  # few trainings make their data themselves

            make_all(inputs, processes, progress)
        tokenizers = read_tokenizers(inputs.folder, source.reversed_sides)
        prepared = PreparedData(inputs.folder, *tokenizers, features=inputs.features)
    return replace(prepared, repeats=tuple(source.repeats(prepared.kept_pairs("train"))))


def _given_tokenizers(folder: Path, source: ParallelSource, trainer: TokenizerMaker) -> Tokenizers:
    """Returns the tokenizers of a folder that was prepared elsewhere, once it is checked."""
    if not isinstance(source.prepared, Store) and not is_intact(folder):
        raise CorpusError(
            f"data.root={folder} is damaged, or its parts are missing; copy it again, with the folder parts next to "
            "the folder that it is in"
        )
    tokenizers = read_tokenizers(folder, source.reversed_sides)
    if not reads_text(trainer):
        pairs = zip(tokenizers, trainer.train([], [], source.tags), strict=True)
        if any(digest_of_pieces(here.model) != digest_of_pieces(given.model) for here, given in pairs):
            raise ConfigError(
                f"data.root={folder} was prepared with another tokenizer than that of tokenizer.model or init; prepare "
                "it with the same options"
            )
    return tokenizers


def text_problems(source: ParallelSource, tokenizer: SentencePieceTokenizer, cache_dir: Path) -> list[str]:
    """Warnings about text in a form other than the options declare, from the start of each file.

    ``tokenizer`` is the target's. Text that was prepared elsewhere is not read again.
    """
    if source.prepared is not None:
        return []
    files = {split: [pair] for split, pair in source.files(cache_dir).items()}
    files["train"] = source.train_files(cache_dir)
    samples: dict[str, list[str]] = {}
    problems: list[str] = []
    for split, pairs in files.items():
        for src, tgt in pairs:
            sides = [tgt] if source.has_features else [src, tgt]
            samples |= {f"data.{split} ({path.name})": head(path) for path in sides}
            if split != "train":
                place = f"data.{split} ({tgt.name})"
                problems += reference_problems(place, map(tokenizer.normalize_like_decode, samples[place]), tokenizer)
    return form_problems(samples, text_form=source.text_form, joiner=tokenizer.joiner) + problems
