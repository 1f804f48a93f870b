"""Heatmaps of the sample translations of a validation."""

from typing import Any

import lightning

from softsearch.evaluation.inference import TorchStepFunction, evaluating
from softsearch.evaluation.schema import Heatmap
from softsearch.evaluation.word_alignment import Sentence, align, encode_sentences
from softsearch.models.seq2seq import Seq2Seq
from softsearch.text.features import FeatureSource
from softsearch.training.callbacks.translate import TranslateValidation, whole_weights

_MAX_PIECES = 60  # pieces on a side of a readable heatmap


def draw_samples(
    trainer: lightning.Trainer, model: Seq2Seq, validation: TranslateValidation, count: int
) -> list[Heatmap]:
    """Draws heatmaps of the first ``count`` samples that are short enough, on the first process."""
    data: Any = trainer.datamodule  # type: ignore[attr-defined]  # missing from Lightning's annotations
    tokenizers = (data.prepared.src_tokenizer, data.prepared.tgt_tokenizer)
    tgt = encode_sentences(tokenizers[1], validation.spaced(validation.written))
    src, lines = validation.spaced(validation.src), validation.sample_lines()
    sources = [Sentence(ids, line[0]) for ids, line in zip(src, lines, strict=True)]
    pairs = [pair for pair in zip(sources, tgt, strict=True) if max(len(s.ids) for s in pair) <= _MAX_PIECES]
    sources, tgt = ([pair[side] for pair in pairs[:count]] for side in (0, 1))
    with whole_weights(trainer), evaluating(model):
        aligned = align(TorchStepFunction(model), tokenizers, sources, tgt, units="pieces") or []
    if not trainer.is_global_zero or not aligned:
        return []
    from softsearch.report.heatmap import heatmap

    vectors = (sentence.ids.features if isinstance(sentence.ids, FeatureSource) else None for sentence in sources)
    pictures = (None if features is None else data.source.picture(features) for features in vectors)
    captions = (tokenizers[1].normalize_like_decode(str(sentence.text)) for sentence in tgt)
    return [heatmap(*a, caption, p) for a, caption, p in zip(aligned, captions, pictures, strict=True)]
