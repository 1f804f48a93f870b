"""Reads vocabularies of M2M-100 and NLLB-200: SentencePiece pieces with fairseq's ids, and languages."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from softsearch.data import Piece, read_pieces, with_pieces
from softsearch.data.parts import kind_of, letters_of, processor_of
from softsearch.errors import CheckpointError, ConfigError
from softsearch.extras.importing.config_json import Config, read_object
from softsearch.extras.importing.hugging_face_tokenizer import from_tokenizer_json
from softsearch.extras.importing.imported import read_bytes
from softsearch.extras.importing.pieces import CONTROL, UNUSED, USER_DEFINED
from softsearch.text import language_tag, read_lines, source_tag
from softsearch.text.parts import nearest_language

_PIECES, _TOKENIZER = "sentencepiece.bpe.model", "tokenizer.json"
_SPECIAL = {"<pad>": 1, "<unk>": 3, "<s>": 0, "</s>": 2}  # fairseq's ids, in our order
_SHIFT = 1  # from the ids of the SentencePiece model to fairseq's
_SPACE = "\u2581"
_LANGUAGE = re.compile(r"__([a-z]{2,8})__|([a-z]{2,3}_[A-Z][a-z]{3})")  # tokens of M2M-100 and NLLB-200
_USUAL_SOURCES = ("eng_Latn", "en")  # as in the tokenizers of transformers
# The languages of M2M-100 and of its models for WMT 2021; their tokens follow the pieces in this order.
_M2M_CODES = {
    "m2m100": (
        "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu "
        "hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt "
        "ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
    ),
    "wmt21": "en ha is ja cs ru zh de",
}


@dataclass(frozen=True)
class LanguageVocabulary:
    """The rows of a model, and our tokenizer for them.

    Args:
        base: the SentencePiece model as published.
        name: name of its file, for messages.
        special: rows of PAD, UNK, BOS and EOS.
        words: pieces of text with their rows; -1 if the model has none.
        others: rows that never occur in text.
        languages: rows of the language tokens by code.
    """

    base: bytes
    name: str
    special: tuple[int, ...]
    words: tuple[tuple[Piece, int], ...]
    others: tuple[int, ...]
    languages: dict[str, int]

    @property
    def codes(self) -> list[str]:
        """Returns the codes of the languages."""
        return list(self.languages)

    @cached_property
    def model(self) -> bytes:
        """Returns the SentencePiece model, with tags (``softsearch.models.many_languages``) after the pieces."""
        pieces = [piece for piece, _ in self.words]
        pieces += [Piece(f"\n{row}", 0.0, CONTROL) for row in self.others]
        pieces += [Piece(language_tag(code), 0.0, CONTROL) for code in self.languages]
        for tag in (language_tag, source_tag):
            pieces += [Piece(_SPACE + tag(code), 0.0, USER_DEFINED) for code in self.languages]
        return with_pieces(self.base, pieces, self.name)

    @cached_property
    def rows(self) -> list[int]:
        """Returns the row of each id."""
        words = [self.special[1] if row < 0 else row for _, row in self.words]
        return [*self.special, *words, *self.others, *3 * [*self.languages.values()]]

    @property
    def never(self) -> list[int]:
        """Returns the ids that no translation has: those of tags, and of pieces without a row."""
        lacking = [len(self.special) + index for index, (_, row) in enumerate(self.words) if row < 0]
        return [*lacking, *range(len(self.rows) - 2 * len(self.languages), len(self.rows))]

    def default(self, code: object, side: str) -> str:
        """Returns the default language of a side: the one in the files, or the usual source language, or ""."""
        usual = next((each for each in _USUAL_SOURCES if each in self.languages), "") if side == "src" else ""
        return code if isinstance(code, str) and code in self.languages else usual

    def check_specials(self, config: Config) -> None:
        """Refuses a config with other special ids.

        Raises:
            ConfigError: there is such an id.
        """
        pad, _, _, eos = self.special
        for key, row in {"pad_token_id": pad, "eos_token_id": eos, "decoder_start_token_id": eos}.items():
            config.choice(key, row)

    def cut(self, languages: Sequence[str], text: Sequence[Path]) -> "LanguageVocabulary":
        """Returns the vocabulary of some languages: the pieces in text, or without text those of the scripts.

        Pieces of one character in these scripts are always kept, so that other text is split into smaller pieces.

        Raises:
            ConfigError: a language is missing, or its script is not known.
            CorpusError: a file cannot be read.
        """
        for code in languages:
            if code not in self.languages:
                raise ConfigError(
                    f"--languages has {code!r}, which the model does not have; {nearest_language(code, self.languages)}"
                )
        spelled = self._of_scripts(languages)
        kept = spelled if not text else self._of_text(text) | {piece for piece in spelled if len(piece) == 1}
        return replace(
            self,
            words=tuple((piece, row) for piece, row in self.words if piece.text in kept),
            others=(),
            languages={code: row for code, row in self.languages.items() if code in languages},
        )

    def _of_scripts(self, languages: Sequence[str]) -> set[str]:
        """Returns the pieces without letters of other scripts."""
        patterns = [letters_of(code, "--languages") for code in dict.fromkeys(languages)]
        characters = {char for piece, _ in self.words for char in piece.text if char.isalpha()}
        foreign = {char for char in characters if not any(pattern.match(char) for pattern in patterns)}
        return {piece.text for piece, _ in self.words if foreign.isdisjoint(piece.text)}

    def _of_text(self, files: Sequence[Path]) -> set[str]:
        """Returns the pieces of the text in files, and the pieces that they are merged from."""
        processor = processor_of(self.base, self.name)
        used = {token for file in files for line in read_lines(file) for token in processor.encode(line)}
        pieces = {str(processor.id_to_piece(token)) for token in used}
        if kind_of(self.base, self.name) != "bpe":
            return pieces
        scores = {piece.text: piece.score for piece, _ in self.words}
        return pieces.union(*(_merged_from(piece, scores) for piece in pieces))


def _merged_from(piece: str, scores: Mapping[str, float]) -> set[str]:
    """Returns the pieces that BPE merges into a piece, by the order of their scores."""
    parts, found = list(piece), set(piece)
    while len(parts) > 1:
        pairs = [(-scores[pair], place) for place, pair in enumerate(map("".join, pairwise(parts))) if pair in scores]
        if not pairs:
            break
        _, place = min(pairs)
        parts[place : place + 2] = ["".join(parts[place : place + 2])]
        found.add(parts[place])
    return found


def read_languages(folder: Path, texts: Mapping[str, Any], size: int) -> LanguageVocabulary:
    """Reads the vocabulary from a folder.

    Args:
        folder: folder of the model.
        texts: its ``tokenizer_config.json``.
        size: number of rows of the model's matrix.

    Raises:
        ConfigError: a file's content does not match its name, or there are no languages.
        CheckpointError: a file is missing or damaged, or has other ids than the matrix.
    """
    described = read_object(path) if (path := folder / _TOKENIZER).is_file() else {}
    path = folder / _PIECES
    if not path.is_file() and described:
        path, base = (
            folder / _TOKENIZER,
            from_tokenizer_json(read_bytes(folder / _TOKENIZER, "a tokenizer"), _TOKENIZER),
        )
    else:
        base = read_bytes(path, "a SentencePiece model")
    pieces = read_pieces(base, str(path))
    ids = _ids(folder, described, pieces)
    languages = _m2m_languages(texts, len(ids)) if (folder / "vocab.json").is_file() else {}
    languages = languages or dict(_named_languages(folder, texts, described, len(ids)))
    if not languages:
        raise ConfigError(
            f"{folder} names no languages, expected tokens such as eng_Latn or __en__ in {_TOKENIZER}, "
            "tokenizer_config.json or special_tokens_map.json; use the files that the model was published with"
        )
    special = tuple(ids.pop(word, row) for word, row in _SPECIAL.items())
    words = [(piece, ids.pop(piece.text, -1)) for piece in pieces.values()]
    lowest = min((piece.score for piece, _ in words), default=0.0)
    unread = [word for word in ids if word not in languages and ids[word] not in languages.values()]
    words += [(Piece(word, lowest - rank, UNUSED), ids[word]) for rank, word in enumerate(unread, 1)]
    used = [*special, *(row for _, row in words if row >= 0), *languages.values()]
    if len({*used}) < len(used) or not {*used} <= {*range(size)}:
        raise CheckpointError(
            f"{folder} has {len(used)} tokens with ids up to {max(used)}, expected distinct ones below vocab_size "
            f"{size}; use files that belong together"
        )
    others = tuple(sorted({*range(size)} - {*used}))
    return LanguageVocabulary(base, str(path), special, tuple(words), others, languages)


def _ids(folder: Path, described: Mapping[str, Any], pieces: Mapping[int, Piece]) -> dict[str, int]:
    """Returns ids by word, without languages: from ``vocab.json`` or ``tokenizer.json``, otherwise fairseq's."""
    if (path := folder / "vocab.json").is_file():
        found: Any = read_object(path)
    else:
        path, model = folder / _TOKENIZER, described.get("model")
        found = model.get("vocab") if isinstance(model, dict) else None
        if found is None:
            return {**_SPECIAL, **{piece.text: index + _SHIFT for index, piece in pieces.items()}}
        if isinstance(found, list):  # unigram: words with scores
            found = {word[0]: index for index, word in enumerate(found) if isinstance(word, list) and word}
    if not isinstance(found, dict) or not all(isinstance(w, str) and type(row) is int for w, row in found.items()):
        raise CheckpointError(f"{path} has no ids by word; use another file")
    return {word: row for word, row in found.items() if not _LANGUAGE.fullmatch(word) and word != "<mask>"}


def _m2m_languages(texts: Mapping[str, Any], begin: int) -> dict[str, int]:
    """Returns the languages that the tokenizer of M2M-100 adds after its pieces."""
    codes = _M2M_CODES.get(str(texts.get("language_codes", "m2m100")), "").split()
    return {code: begin + index for index, code in enumerate(codes)}


def _named_languages(
    folder: Path, texts: Mapping[str, Any], described: Mapping[str, Any], begin: int
) -> Iterator[tuple[str, int]]:
    """Returns the languages that files name as tokens, with their ids; without ids they follow the pieces."""
    added = read_object(path) if (path := folder / "added_tokens.json").is_file() else {}
    special = read_object(path) if (path := folder / "special_tokens_map.json").is_file() else {}
    decoded, model = texts.get("added_tokens_decoder"), described.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    ids: dict[Any, Any] = {**vocab} if isinstance(vocab, dict) else {}
    ids |= {
        _content(token): token.get("id") for token in described.get("added_tokens") or () if isinstance(token, dict)
    }
    ids |= {_content(token): int(row) for row, token in (decoded or {}).items() if str(row).isdecimal()}
    ids |= added
    listed: Iterable[Any] = ()
    for source in (special, texts):
        for key in ("additional_special_tokens", "extra_special_tokens"):
            listed = listed or (source.get(key) or ())
    found = {token: row for token, row in ids.items() if isinstance(token, str) and _LANGUAGE.fullmatch(token)}
    if not found:
        names = [name for name in map(_content, listed) if isinstance(name, str) and _LANGUAGE.fullmatch(name)]
        found = {name: begin + index for index, name in enumerate(names)}
    for token, row in sorted(found.items(), key=lambda pair: str(pair[1])):
        if type(row) is not int:
            raise CheckpointError(f"{folder}: {token} has the id {row!r:.40}, expected a number; use another file")
        match = _LANGUAGE.fullmatch(token)
        yield str(match and (match[1] or match[2])), row


def _content(token: Any) -> Any:
    return token.get("content") if isinstance(token, dict) else token
