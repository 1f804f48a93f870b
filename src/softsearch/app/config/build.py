"""Data, models and searches built from a config or a checkpoint."""

import copy
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.allowed_classes import UntrustedClassError, build_from_file
from softsearch.app.config.options import Train, Vectors
from softsearch.app.config.validation import build, check, target_of
from softsearch.data.corpora.base import DIVISION, ParallelSource
from softsearch.data.datamodule import ParallelDataModule
from softsearch.errors import CheckpointError, ConfigError
from softsearch.models.init import INITS
from softsearch.models.interface import CountedDecoder
from softsearch.models.seq2seq import Seq2Seq
from softsearch.search.interface import SearchStrategy
from softsearch.search.options import Lengths, SearchOptions
from softsearch.text.id_mapping import same_pieces
from softsearch.text.tokenizer import Tokenizers
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents, describe_mismatch

log = logging.getLogger(__name__)
SearchMaker = Callable[..., SearchStrategy]  # from the tokenizers of the system that searches; see with_trained_length


def data_maker(options: Train) -> partial[ParallelDataModule]:
    """Builds ``data``, ``noise`` and ``batching``; returns a function of the ``tokenizer`` that makes the datamodule.

    Raises:
        ConfigError: an option is wrong, or a language is neither given nor in the names of the files.
    """
    source: ParallelSource = build(options.data)
    for key in ("src_lang", "tgt_lang"):
        if not getattr(source, key):
            raise ConfigError(
                f"data.{key} is empty, and the name of the training file does not end with a language, as text.en "
                f"does; set data.{key}=CODE"
            )
    return partial(
        ParallelDataModule,
        source=source,
        batching=build(options.batching),
        cache_dir=Path(options.cache_dir),
        seed=options.seed,
        noise=build(options.noise),
    )


def build_data(options: Train) -> ParallelDataModule:
    """Builds the datamodule with the trainer of ``tokenizer``; raises the errors of ``data_maker``."""
    return data_maker(options)(tokenizer=build(options.tokenizer))


def build_model(model: DictConfig, tokenizers: Tokenizers) -> Seq2Seq:
    """Builds ``model`` for the vocabularies of the source and target tokenizers.

    Raises:
        ConfigError: its sizes do not fit together, or it would share a matrix, or copy tokens, between two
            vocabularies.
    """
    src, tgt = tokenizers
    built: Seq2Seq = build(model, src_vocab_size=src.vocab_size, tgt_vocab_size=tgt.vocab_size)
    _check_one_vocabulary(built, tokenizers)
    return built


def _check_one_vocabulary(model: Seq2Seq, tokenizers: Tokenizers) -> None:
    """Refuses to share an embedding matrix, or to copy pieces, between two different vocabularies."""
    src, tgt = tokenizers
    if model.decoder.copies_source and not same_pieces(src, tgt):
        raise ConfigError(
            "model.decoder copies source pieces and needs one joint vocabulary, but source and target have one each; "
            "set tokenizer.joint=true, or another model.decoder"
        )
    shared = model.encoder.embedding is not None and model.encoder.embedding is model.decoder.embedding
    if shared and not same_pieces(src, tgt):
        rows = enumerate(zip(src.names(), tgt.names(), strict=True))
        token, one, other = next((token, one, other) for token, (one, other) in rows if one != other)
        raise ConfigError(
            f"model.embeddings.tie=all needs one joint vocabulary, but source and target have one each: row {token} of "
            f"the matrix would be {one!r} in one and {other!r} in the other; set tokenizer.joint=true or "
            "model.embeddings.tie=output"
        )


def load_vectors(vectors: Vectors, model: Seq2Seq, tokenizers: Tokenizers) -> None:
    """Initializes the embeddings of a new model from the files ``vectors.src`` and ``vectors.tgt``, if given.

    Raises:
        ConfigError: the model has no such matrix, or has one for both sides but there are two files.
        CorpusError: a file cannot be read as vectors (see ``fill_vectors``).
    """
    if vectors.src is None and vectors.tgt is None:
        return
    from softsearch.data.pretrained_embeddings import fill_vectors

    is_shared = model.encoder.embedding is not None and model.encoder.embedding is model.decoder.embedding
    if vectors.src is not None and vectors.tgt is not None and is_shared:
        raise ConfigError(
            "vectors.src and vectors.tgt are both set, but model.embeddings.tie=all has one matrix for both; "
            "set one of them, or model.embeddings.tie=output"
        )
    sides = (("src", vectors.src, model.encoder.embedding), ("tgt", vectors.tgt, model.decoder.embedding))
    for (side, path, embedding), tokenizer in zip(sides, tokenizers, strict=True):
        if path is None:
            continue
        if embedding is None:
            raise ConfigError(f"vectors.{side} is set, but the model has no such embeddings; set vectors.{side}=null")
        matrix = embedding.weight.detach().numpy()
        log.info("vectors.%s: %s", side, fill_vectors(matrix, tokenizer.names(), path))


class NeedsTokenizers(NamedTuple):
    """The attribute ``needs_tokenizers`` of a strategy of the config group ``search`` that takes ``tokenizers=``.

    These are the tokenizers of the searching model.
    """

    candidates: str  # the option for the search that finds the translations to choose from
    in_bundles: str  # why a bundle cannot recommend it, and what to do instead


def needs_tokenizers(node: DictConfig) -> NeedsTokenizers | None:
    """Returns the ``needs_tokenizers`` of a ``search``; None if it needs no tokenizers."""
    return getattr(target_of(node, "search"), "needs_tokenizers", None)


def search_maker(node: DictConfig) -> SearchMaker:
    """Checks a ``search``, and returns a function that makes its strategy for a system.

    Arguments of the function are the system's tokenizers and ``max_length_factor``, as in ``with_trained_length``.

    Raises:
        ConfigError: an option is wrong. The returned function raises a SoftsearchError if a model cannot be opened.
    """
    if (needs := needs_tokenizers(node)) is not None:
        check(OmegaConf.to_container(node, resolve=True), "search", given=("tokenizers",))
        build(node.get(needs.candidates))
        return lambda tokenizers, trained=0.0: build(with_trained_length(node, trained), tokenizers=tokenizers)
    build(node)
    return lambda _, trained=0.0: build(with_trained_length(node, trained))


def with_trained_length(search: DictConfig, max_length_factor: float) -> DictConfig:
    """Returns a search that allows translations as long as in the test after training, if its own limit is the default.

    Otherwise, the characters of ``chung2016`` would be cut short.
    """
    search = copy.deepcopy(search)
    for node in (search, *(part for part in search.values() if isinstance(part, DictConfig) and "_target_" in part)):
        target, default = target_of(node, "search"), Lengths.max_length_factor
        is_search = isinstance(target, type) and issubclass(target, Lengths)
        if is_search and max_length_factor > default == node.get("max_length_factor", default):
            OmegaConf.update(node, "max_length_factor", max_length_factor, force_add=True)
    return search


def check_attention(search: SearchStrategy, model: Seq2Seq) -> SearchStrategy:
    """Returns the search; refuses, before training, one that the test after training would refuse.

    Raises:
        ConfigError: the search needs attention, and the model has none.
    """
    if isinstance(search, SearchOptions) and search.coverage_penalty and not model.decoder.has_attention:
        raise ConfigError(
            f"search.coverage_penalty is {search.coverage_penalty}, but the model has no attention; set "
            "search.coverage_penalty=0 or choose a model with attention"
        )
    return search


def rebuild_model(contents: CheckpointContents) -> Seq2Seq:
    """Returns the trained model of a checkpoint, in evaluation mode.

    Raises:
        CheckpointError: its config names something forbidden, or the weights do not fit it.
    """
    described_model(contents)  # so that no config can claim more memory than the weights in the file
    return with_weights(_model_of(contents), contents)


def described_model(contents: CheckpointContents) -> Seq2Seq:
    """Returns the model of a checkpoint without memory for its weights; raises as ``rebuild_model``."""
    with torch.device("meta"):
        _fit_weights(model := _model_of(contents), contents)
    _check_one_vocabulary(model, contents.tokenizers)
    return model


def untrained_model(contents: CheckpointContents) -> Seq2Seq:
    """Returns a new model of a checkpoint's config, with random weights as its ``init`` draws them.

    Raises:
        CheckpointError: its config names something forbidden.
    """
    model, options = _model_of(contents), dict(contents.config["model"].get("init") or {})
    if options:
        name = options.pop("_target_", None)
        if name not in INITS:  # a checkpoint calls no other function
            raise CheckpointError(f"{contents.path}: model.init is {name}, expected one of {', '.join(INITS)}")
        INITS[name](model, **{key: float(value) for key, value in options.items() if key != "_partial_"})
    return model


def _model_of(contents: CheckpointContents) -> Seq2Seq:
    """Returns the model of a checkpoint's config without its ``init``, which weights from a file do not need."""
    node = {key: value for key, value in contents.config["model"].items() if key != "init"}
    src, tgt = (tokenizer.vocab_size for tokenizer in contents.tokenizers)
    model: Seq2Seq = build_from_file(contents.path, "model", node, Seq2Seq, src_vocab_size=src, tgt_vocab_size=tgt)
    return model


def with_weights(model: Seq2Seq, contents: CheckpointContents) -> Seq2Seq:
    """Loads the weights of a checkpoint into the model, and returns it in evaluation mode.

    Raises:
        CheckpointError: they have other names or shapes, or the tables of counts are unusable.
    """
    _fit_weights(model, contents)
    model.load_state_dict(contents.weights)
    if isinstance(model.decoder, CountedDecoder) and (problem := model.decoder.problem()):
        raise CheckpointError(f"{contents.path}: {problem}; use another file, or train again")
    return model.eval()


def _fit_weights(model: Seq2Seq, contents: CheckpointContents) -> None:
    """Allocates the tables of counts, and checks that all other weights have the model's names and shapes."""
    if isinstance(model.decoder, CountedDecoder):
        own = {name.removeprefix("decoder."): weight for name, weight in contents.weights.items()}
        model.decoder.make_room(own)
    if different := describe_mismatch(contents.weights, model.state_dict()):
        raise CheckpointError(
            f"{contents.path}: the weights do not fit the model of its config: {different}; if an older softsearch "
            "wrote the file, use that version, or train again"
        )


def rebuild_source(contents: CheckpointContents) -> ParallelSource:
    """Returns the data source that a checkpoint was trained on, without reading any file.

    A source whose class needs ``trust`` is described by the checkpoint: languages, text form and tags. So is one whose
    pairs an older softsearch divided by another rule: those held out now were trained on.

    Raises:
        CheckpointError: its config names something forbidden.
    """
    from softsearch.data.corpora.unbuilt import UnbuiltSource  # only commands that read checkpoints need it

    try:
        source = build_from_file(contents.path, "data", contents.config["data"], ParallelSource)
    except UntrustedClassError as refusal:
        if contents.source is None:
            raise
        return UnbuiltSource(**{**contents.source, "tags": tuple(contents.source["tags"])}, refusal=str(refusal))
    if contents.division == DIVISION:
        return source
    from softsearch.data.corpora.held_out import splits_pairs_off  # only an old checkpoint needs it

    if not splits_pairs_off(contents.config["data"]):
        return source
    return UnbuiltSource(
        src_lang=source.src_lang,
        tgt_lang=source.tgt_lang,
        text_form=source.text_form,
        tags=source.tags,
        has_features=source.has_features,
        refusal=f"an older softsearch wrote {contents.path}, and split other pairs off its training text for data.val "
        "or data.test, so that the pairs split off now were trained on; name files (test='[x.en,x.de]', "
        "val='[x.en,x.de]'), or train again",
    )
