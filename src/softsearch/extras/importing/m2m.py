"""Imports M2M-100 (Fan et al. 2021, arXiv:2010.11125) and NLLB-200 (arXiv:2207.04672) from Hugging Face folders.

The equations are those of ``modeling_m2m_100.py``, the ids those of ``tokenization_m2m_100.py`` and
``tokenization_nllb.py``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from softsearch.extras.importing.bart_layout import ALIASES, take_embeddings, take_stack
from softsearch.extras.importing.config_json import Config, read_object
from softsearch.extras.importing.imported import NEVER, Imported, transformer
from softsearch.extras.importing.m2m_vocabulary import LanguageVocabulary, read_languages
from softsearch.extras.importing.weights import read_weights

_DEFAULTS: dict[str, Any] = {  # of options that a config may omit
    "scale_embedding": True,
    "activation_function": "relu",
    "dropout": 0.1,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "tie_word_embeddings": True,
}
_FIXED = {"is_encoder_decoder": True, "is_decoder": False, "quantization_config": None}
_POSITION_BUFFERS = ("model.encoder.embed_positions.weights", "model.decoder.embed_positions.weights")


def read(folder: Path, config: Config, languages: Sequence[str] = (), text: Sequence[Path] = ()) -> Imported:
    """Reads the model from a folder.

    Args:
        folder: folder of the model.
        config: its ``config.json``.
        languages: languages to keep, by default all.
        text: files of text in these languages, to keep only its pieces; by default those of the scripts.

    Raises:
        ConfigError: an option is not supported, or a language is missing.
        CheckpointError: a file is missing or damaged, or the files do not belong together.
    """
    config = Config(config.path, {**_DEFAULTS, **config.values})
    config.check(_FIXED, ALIASES)
    dim, size = config.positive_int("d_model"), config.positive_int("vocab_size")
    tied = config.flag("tie_word_embeddings", default=True)
    texts = read_object(path) if (path := folder / "tokenizer_config.json").is_file() else {}
    whole = read_languages(folder, texts, size)
    whole.check_specials(config)
    vocabulary = whole.cut(languages, text) if languages else whole
    weights = read_weights(folder)
    weights.taken.update(name for name in _POSITION_BUFFERS if name in weights)  # not read, because they are computed
    src, tgt, output = take_embeddings(weights, (size, size), dim, shared=True, tied=tied)
    bias = torch.zeros(size)
    if "final_logits_bias" in weights:
        bias += weights.take("final_logits_bias", 1, size)[0]
    rows = torch.tensor(vocabulary.rows)
    both = src[rows]
    new = {
        "encoder.embedding.weight": both,
        "decoder.embedding.weight": both if tied else tgt[rows],
        "decoder.output_projection.weight": both if tied else output[rows],
        "decoder.output_projection.bias": bias[rows],
    }
    new["decoder.output_projection.bias"][vocabulary.never] = NEVER
    encoder, decoder = (take_stack(weights, config, side, new, pre_norm=True) for side in ("encoder", "decoder"))
    weights.finish()
    for options in (encoder, decoder):
        options |= {"positions": "sinusoidal_tensor2tensor", "num_languages": len(vocabulary.codes)}
    encoder["source_language"] = "last" if texts.get("legacy_behaviour") is True else "first"
    tie = "all" if tied else "none"
    model = transformer(tie, dim, encoder, decoder)
    for part in ("encoder", "decoder"):
        model[part]["_target_"] = f"softsearch.models.ManyLanguages{part.capitalize()}"
    src_lang, tgt_lang = (vocabulary.default(texts.get(f"{side}_lang"), side) for side in ("src", "tgt"))
    return Imported(
        name="m2m_100",
        model=model,
        tokenizers=(vocabulary.model, vocabulary.model),
        weights=new,
        src_lang=src_lang,
        tgt_lang=tgt_lang,
        codes=vocabulary.codes,
        notes=_notes(whole, vocabulary, dim, src_lang, tgt_lang),
    )


def _notes(whole: LanguageVocabulary, kept: LanguageVocabulary, dim: int, src_lang: str, tgt_lang: str) -> list[str]:
    codes = kept.codes
    named = f"{' '.join(codes[:8])}{' ...' * (len(codes) > 8)}"
    default = f"into {tgt_lang}" if tgt_lang else "--tgt of translate names the target"
    notes = [f"{len(codes)} languages: {named}; from {src_lang or 'the language that --src names'}, {default}"]
    if (before := len(whole.rows)) > (after := len(kept.rows)):
        gained = (before - after) * dim * 4 / 2**20
        notes.append(
            f"reduced from {before:,} to {after:,} pieces, {gained:,.0f} MB less in float32; text of these pieces is "
            "split as before, other text into smaller ones, and the probabilities of the kept pieces sum to 1"
        )
    return notes
