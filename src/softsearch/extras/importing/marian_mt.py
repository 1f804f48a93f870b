"""Imports Hugging Face's MarianMT, the form in which OPUS-MT (Tiedemann & Thottingal 2020, EAMT) is published.

Equations and tokenizer are those of ``transformers``: ``modeling_marian.py``, ``tokenization_marian.py``.
"""

import re
from pathlib import Path
from typing import Any

import torch

from softsearch.data import Piece, read_pieces, with_pieces
from softsearch.data.parts import kind_of
from softsearch.errors import CheckpointError
from softsearch.extras.importing.bart_layout import ALIASES, take_embeddings, take_stack
from softsearch.extras.importing.config_json import Config, read_object, read_vocabulary
from softsearch.extras.importing.imported import NEVER, Imported, read_bytes, transformer
from softsearch.extras.importing.pieces import UNUSED, USER_DEFINED
from softsearch.extras.importing.weights import read_weights
from softsearch.text import BOS, language_tag

_TAG = re.compile(r">>([^\s<>]+)<<")  # at the start of source lines of multilingual models
_CODE = re.compile(r"[\w+-]{1,100}")  # of one or several languages
_FIXED = {  # values that define a MarianMT, if they are in its config
    "is_encoder_decoder": True,
    "is_decoder": False,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
    "forced_bos_token_id": None,
    "quantization_config": None,
}
_SPACE, _EMPTY = "\u2581", "\nempty"
_SPECIAL = ("<pad>", "<unk>", "</s>")


def read(folder: Path, config: Config) -> Imported:
    """Reads the model from a folder.

    Raises:
        ConfigError: an option is not supported.
        CheckpointError: a file is missing or damaged, or the files do not belong together.
    """
    config.check(_FIXED, ALIASES)
    dim, src_size = config.positive_int("d_model"), config.positive_int("vocab_size")
    shared = config.flag("share_encoder_decoder_embeddings", default=True)
    tied = config.flag("tie_word_embeddings", default=True)
    tgt_size = src_size if shared or config["decoder_vocab_size"] is None else config.positive_int("decoder_vocab_size")
    texts = read_object(path) if (path := folder / "tokenizer_config.json").is_file() else {}
    separate = texts.get("separate_vocabs") is True
    src_words = read_vocabulary(folder / "vocab.json", src_size)
    tgt_words = read_vocabulary(folder / ("target_vocab.json" if separate else "vocab.json"), tgt_size)
    src_ids, tgt_ids = special_rows(config, src_words, tgt_words)
    src_model, src_rows = source_pieces(folder / "source.spm", src_words)
    tgt_model, tgt_rows = target_pieces(folder / "target.spm", tgt_words)
    src_ids, tgt_ids = [*src_ids, *src_rows], [*tgt_ids, *tgt_rows]
    weights = read_weights(folder)
    src, tgt, output = take_embeddings(weights, (src_size, tgt_size), dim, shared=shared, tied=tied)
    bias = torch.zeros(tgt_size)
    if "final_logits_bias" in weights:
        bias += weights.take("final_logits_bias", 1, tgt_size)[0]
    bias[_banned(folder, config, tgt_size)] = NEVER
    new = {
        "encoder.embedding.weight": src[src_ids],
        "decoder.embedding.weight": tgt[tgt_ids],
        "decoder.output_projection.weight": output[tgt_ids],
        "decoder.output_projection.bias": bias[tgt_ids],
    }
    new["decoder.output_projection.bias"][BOS] = NEVER  # its row belongs to another word
    encoder, decoder = (take_stack(weights, config, side, new) for side in ("encoder", "decoder"))
    weights.finish()
    given = {f"{side}_lang": texts.get(f"{name}_lang") for side, name in (("src", "source"), ("tgt", "target"))}
    languages: dict[str, Any] = {k: v for k, v in given.items() if isinstance(v, str) and _CODE.fullmatch(v)}
    return Imported(
        name="marian_mt",
        model=transformer("output" if tied else "none", dim, encoder, decoder),
        tokenizers=(src_model, tgt_model),
        weights=new,
        notes=_notes(src_words),
        **languages,
    )


def special_rows(config: Config, src_words: dict[str, int], tgt_words: dict[str, int]) -> tuple[list[int], list[int]]:
    """Returns the rows of PAD, UNK, BOS and EOS of source and target.

    Translations begin with the token in the config, usually PAD, and sources have no BOS. If each side has its own
    vocabulary, start and end in the config are those of the target; the end of the source is that of its vocabulary.
    """
    for word in ("<unk>", "</s>", "<pad>"):
        if word not in src_words or (word == "<unk>" and word not in tgt_words):
            raise CheckpointError(f"{config.path.parent}: the vocabulary has no {word}; use another file")
    checked = {"eos_token_id": ("</s>", tgt_words), "pad_token_id": ("<pad>", src_words)}
    for key, (word, words) in checked.items():
        if words.get(word) != config[key]:
            config.refuse(key, f"{words.get(word)}, the id of {word} in its vocabulary")
    if (start := config.positive_int("decoder_start_token_id", 0)) >= len(tgt_words):
        config.refuse("decoder_start_token_id", f"an id below {len(tgt_words)}")
    pad = src_words["<pad>"]
    return (
        [pad, src_words["<unk>"], pad, src_words["</s>"]],
        [tgt_words.get("<pad>", start), tgt_words["<unk>"], start, tgt_words["</s>"]],
    )


def source_pieces(path: Path, words: dict[str, int]) -> tuple[bytes, list[int]]:
    """Returns the tokenizer of source lines, and the row of each of its pieces of text.

    ``tokenization_marian.py`` looks up SentencePiece's pieces by name: a piece that is not found is the unknown word,
    and a character unknown to SentencePiece may be found. Tags come first.
    """
    model = read_bytes(path, "a SentencePiece model")
    pieces = list(read_pieces(model, str(path)).values())
    rows = [words.get(piece.text, words["<unk>"]) for piece in pieces]
    for word in filter(_TAG.fullmatch, words):
        names = [word, language_tag(word[2:-2])]  # the second is the form in data=multilingual and evaluate
        pieces += [Piece(_SPACE + name, 0.0, USER_DEFINED) for name in names]
        rows += [words[word]] * len(names)
    characters = _characters(model, pieces, words, path)
    return with_pieces(model, [*pieces, *characters], str(path)), [*rows, *(words[piece.text] for piece in characters)]


def target_pieces(path: Path, words: dict[str, int]) -> tuple[bytes, list[int]]:
    """Returns the tokenizer of translations, and the row of each of its pieces of text.

    Every word of the vocabulary can be generated, but text is split into the pieces of this SentencePiece model.
    """
    model = read_bytes(path, "a SentencePiece model")
    pieces = [piece for piece in read_pieces(model, str(path)).values() if piece.text in words]
    pieces += _characters(model, pieces, words, path)
    own, lowest = {*_SPECIAL, *(piece.text for piece in pieces)}, _lowest(pieces)
    others = [word for word in words if word not in own]
    rows = [words[piece.text] for piece in pieces] + [words[word] for word in others]
    pieces += [Piece(word or _EMPTY, lowest - rank, UNUSED) for rank, word in enumerate(others, 1)]
    return with_pieces(model, pieces, str(path)), rows


def _characters(model: bytes, pieces: list[Piece], words: dict[str, int], path: Path) -> list[Piece]:
    """Returns words of one character that are not pieces, as pieces that change no other segmentation."""
    own, lowest = {piece.text for piece in pieces}, _lowest(pieces)
    ranked = kind_of(model, str(path)) == "bpe"
    new = [word for word in words if len(word) == 1 and word not in own]
    return [Piece(word, lowest - rank * ranked) for rank, word in enumerate(new, 1)]


def _lowest(pieces: list[Piece]) -> float:
    return min((piece.score for piece in pieces), default=0.0)


def _banned(folder: Path, config: Config, rows: int) -> list[int]:
    """Returns the ids that are never generated, as in ``generate``.

    Raises:
        ConfigError: they are sequences of several ids, or not in this vocabulary.
    """
    path = folder / "generation_config.json"
    settings = Config(path) if path.is_file() else config
    key = "bad_words_ids"
    banned = settings[key] if settings[key] is not None else []
    if not isinstance(banned, list) or not all(
        isinstance(ids, list) and len(ids) == 1 and type(ids[0]) is int and 0 <= ids[0] < rows for ids in banned
    ):
        settings.refuse(key, "lists with one id of the vocabulary each")
    return [token for (token,) in banned]


def _notes(words: dict[str, int]) -> list[str]:
    tags = sorted(filter(_TAG.fullmatch, words))
    return [f"source lines must begin with the target language: {' '.join(tags[:8])}{' ...' * (len(tags) > 8)}"][
        : len(tags)
    ]
