"""``tokenizer.json`` files of Hugging Face, for hosts without SentencePiece (https://huggingface.co/docs/tokenizers)."""

import json
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from softsearch.text.folding import FOLDING, folding_rules, known_characters
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers
from softsearch.text.vocabulary import BOS, EOS, PAD, UNK, with_eos

_SPACE, _UNKNOWN = "\u2581", "\0"  # NUL is never in a SentencePiece vocabulary
_TEXT_END = r"(?![\s\S])"  # in the Ruby regular expressions of tokenizers, $ is the end of a line
_TEXT_START = r"(?<![\s\S])"
_LAST_PRIVATE = 0x10FFFD
_CHECKED, _MAX_PIECES = 500, 40
_ODD = (
    "", " ", "   ", " a  b ", "\u2581", "a\u2581b \u2581 c\u2581", "\u2581 a", "\t", "a\tb", "\u00a0a\u00a0\u3000b",
    "a\u2028b", "\0", "a\0\x1fb", "\u2585", "\r", "a\nb", "\npad\nunk\nbos\neos", "<pad> <unk> <s> </s> [UNK]",
    "\ufb01 \uff21\u00bd\u2460", "a\u0301 \u00e1", "\u202eabc\u200b\u200d\ufeff", "\U0001f469\u200d\U0001f680",
    "\u4e2d\u6587\uac00", "aaaaaaaaaaaaa", "..........", "\U0010fffd",
)  # fmt: skip
_log = logging.getLogger(__name__)


def tokenizer_files(tokenizers: Tokenizers) -> dict[str, bytes]:
    """Returns ``tokenizer.json``, or ``src.tokenizer.json`` and ``tgt.tokenizer.json`` if the two sides differ.

    ``encode`` returns the ids that the model reads, EOS included; ``decode`` skips PAD, BOS and EOS. No text encodes to
    a special id. A file that would give other ids than SentencePiece is omitted with a warning; so is that of a
    reversed side, which the format cannot express.
    """
    src, tgt = tokenizers
    sides = {"": src} if src.fingerprint == tgt.fingerprint else {"src.": src, "tgt.": tgt}
    files: dict[str, bytes] = {}
    for side, tokenizer in sides.items():
        name, converted = f"{side}tokenizer.json", _convert(tokenizer)
        problem = (
            "its ids run from the end of the text" if tokenizer.reverse else _difference(tokenizer, converted, name)
        )
        if problem:
            _log.warning("%s was not written, so hosts need SentencePiece: %s", name, problem)
        else:
            files[name] = converted.to_str().encode()
    return files


def _convert(tokenizer: SentencePieceTokenizer) -> Tokenizer:
    proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model)  # type: ignore[attr-defined] # made at run time
    names = [piece.piece for piece in proto.pieces]
    tags, unread = ({}, "") if tokenizer.has_words else _placeholders(proto)
    vocab = [unread * (p.type == p.UNUSED) + tags.get(p.piece, p.piece) for p in proto.pieces]
    converted = Tokenizer(_model(tokenizer, proto, vocab))
    spec, suffix = proto.normalizer_spec, proto.trainer_spec.treat_whitespace_as_suffix
    rules = _folding(proto) if spec.name == FOLDING else _rules(spec)
    converted.normalizer = _normalizer(spec, rules, tags, unread, suffix=suffix)
    if tokenizer.has_words:
        converted.normalizer = _words_normalizer(rules)
        converted.pre_tokenizer = pre_tokenizers.Split(Regex(f"{_SPACE}[^{_SPACE}]+"), "isolated")
    # No added tokens, because they would be found in texts.
    converted.post_processor = processors.TemplateProcessing(
        single=["$A", names[EOS]], pair=["$A", "$B", names[EOS]], special_tokens=[(names[EOS], EOS)]
    )
    shown = {names[PAD]: "", names[BOS]: "", names[EOS]: "", names[UNK]: proto.trainer_spec.unk_surface}
    replaced = shown | {char: tag for tag, char in tags.items()} | ({unread: ""} if unread else {}) | {_SPACE: " "}
    silent = [re.escape(p.piece) for p in proto.pieces[EOS + 1 :] if p.type == p.CONTROL]  # as of a target's language
    controls = Regex(f"{_TEXT_START}(?:{'|'.join(silent)}){_TEXT_END}")
    converted.decoder = decoders.Sequence(
        [
            *([decoders.Replace(controls, "")] if silent else []),
            *(decoders.Replace(old, new) for old, new in replaced.items()),
            decoders.Fuse(),
            decoders.Replace(Regex(f"{_TEXT_START} +| +{_TEXT_END}"), ""),
            *([decoders.Replace(tokenizer.joiner, "")] if tokenizer.joiner else []),
        ]
    )
    return converted


def _placeholders(proto: Any) -> tuple[dict[str, str], str]:
    """Returns characters that are in no piece: one for each tag, and one before pieces that are only written.

    Tags are sorted by length, the longest first; pieces are merged from single characters.
    """
    tags = [p.piece for p in proto.pieces if p.type == p.USER_DEFINED]
    used = {char for piece in proto.pieces for char in piece.piece}
    free = (chr(code) for code in range(_LAST_PRIVATE, 0, -1) if chr(code) not in used)
    placeholders = dict(zip(sorted(tags, key=len, reverse=True), free, strict=False))
    return placeholders, next(free) if any(p.type == p.UNUSED for p in proto.pieces) else ""


def _model(tokenizer: SentencePieceTokenizer, proto: Any, vocab: list[str]) -> models.Model:
    ids, unknown = {name: index for index, name in enumerate(vocab)}, vocab[UNK]
    if tokenizer.has_words:  # not WordLevel, which JavaScript libraries lack; no piece continues a word
        longest = max(map(len, vocab))
        return models.WordPiece(
            ids, unk_token=unknown, max_input_chars_per_word=longest, continuing_subword_prefix="##"
        )
    if proto.trainer_spec.model_type == proto.trainer_spec.UNIGRAM:
        lowest = min((p.score for p in proto.pieces if p.type == p.NORMAL), default=0.0)  # an unknown costs 10 more
        scores = (lowest if p.type == p.UNUSED else p.score for p in proto.pieces)
        return models.Unigram(list(zip(vocab, scores, strict=True)), UNK)
    merges = list(_merges(proto)) if proto.trainer_spec.model_type == proto.trainer_spec.BPE else []
    return models.BPE(ids, merges, unk_token=unknown, fuse_unk=True)


def _merges(proto: Any) -> Iterator[tuple[str, str]]:
    """Yields all pairs of pieces that form a piece, by its rank; long left parts first, as the leftmost pair wins."""
    pieces = [(p.piece, p.score) for p in proto.pieces if p.type == p.NORMAL]
    known = {name for name, _ in pieces}
    for name, _ in sorted(pieces, key=lambda piece: -piece[1]):
        for end in range(len(name) - 1, 0, -1):
            if name[:end] in known and name[end:] in known:
                yield name[:end], name[end:]


def _normalizer(
    spec: Any, rules: list[normalizers.Normalizer], tags: dict[str, str], unread: str, *, suffix: bool
) -> normalizers.Normalizer:
    """Returns SentencePiece's rules and its treatment of spaces.

    A line feed, with which special pieces begin, becomes unknown, and so do placeholders in a text. A tag without a
    space keeps its form even if the rules would change it.
    """
    placeholders = unread + "".join(tags.values())
    inner = [tag for tag in tags if not tag.startswith(_SPACE)]
    return normalizers.Sequence(
        [
            *([normalizers.Replace(Regex(f"[{placeholders}]"), _UNKNOWN)] if placeholders else []),
            *(normalizers.Replace(tag, tags[tag]) for tag in inner),
            *rules,
            normalizers.Replace("\n", _UNKNOWN),
            *_spaces(spec, suffix=suffix),
            *(normalizers.Replace(tag, char) for tag, char in tags.items()),
        ]
    )


def _rules(spec: Any) -> list[normalizers.Normalizer]:
    """Returns a model's replacements; ``tokenizers`` accepts SentencePiece's bytes."""
    charsmap = bytes(spec.precompiled_charsmap)
    return [normalizers.Precompiled(charsmap)] if charsmap else []


def _folding(proto: Any) -> list[normalizers.Normalizer]:
    """Returns the folding rules one by one, so that all readers apply them alike; those of several characters first.

    No rule produces text that another one replaces, so the order of the others does not matter.
    """
    several: list[tuple[str, str]] = []
    single: defaultdict[str, list[str]] = defaultdict(list)
    for text, replacement in folding_rules(known_characters(proto)).items():
        if len(text) > 1:
            several.append((text, replacement))
        else:
            single[replacement].append(text)
    several.sort(key=lambda rule: -len(rule[0]))
    classes = [(Regex(f"[{''.join(texts)}]"), replacement) for replacement, texts in single.items()]
    return [*(normalizers.Replace(*rule) for rule in several), *(normalizers.Replace(*rule) for rule in classes)]


def _spaces(spec: Any, *, suffix: bool) -> Iterator[normalizers.Normalizer]:
    """Removes surplus spaces, adds one before the first word or after the last, and replaces spaces by U+2581."""
    if spec.remove_extra_whitespaces:
        yield normalizers.Replace(Regex(f"{_TEXT_START} +"), "")
    if spec.add_dummy_prefix and not suffix:
        yield normalizers.Prepend(_SPACE)
    if spec.remove_extra_whitespaces:
        end = _SPACE if spec.add_dummy_prefix and suffix else ""
        yield normalizers.Replace(Regex(f"[ {_SPACE}]+{_TEXT_END}"), end)
    yield normalizers.Replace(Regex(" +" if spec.remove_extra_whitespaces else " "), _SPACE)
    if spec.add_dummy_prefix and suffix:
        last = f"[^{_SPACE}]" if spec.remove_extra_whitespaces else r"[\s\S]"
        yield normalizers.Replace(Regex(f"(?<={last}){_TEXT_END}"), _SPACE)


def _words_normalizer(rules: list[normalizers.Normalizer]) -> normalizers.Normalizer:
    return normalizers.Sequence(
        [
            *rules,
            normalizers.Prepend(_SPACE),
            normalizers.Replace(Regex(f"[ {_SPACE}]+"), _SPACE),
            normalizers.Replace(Regex(f"{_SPACE}{_TEXT_END}"), ""),
        ]
    )


def _difference(tokenizer: SentencePieceTokenizer, converted: Tokenizer, name: str) -> str:
    """Describes a difference for odd texts or texts of random pieces; "" if there is none.

    The page and examples/node apply rules like SentencePiece, so texts are compared with its rules. ``tokenizers``
    applies the shortest rule, to a letter together with its marks; such differences are only logged.
    """
    rng = np.random.default_rng(0)
    random = [rng.integers(0, tokenizer.vocab_size, rng.integers(1, _MAX_PIECES)).tolist() for _ in range(_CHECKED)]
    for ids in random:
        if converted.decode(ids) != tokenizer.decode(ids):
            return f"ids {ids} are {converted.decode(ids)!r}, expected {tokenizer.decode(ids)!r}"
    described = json.loads(converted.to_str())
    steps = described["normalizer"]["normalizers"]
    described["normalizer"]["normalizers"] = [step for step in steps if step["type"] != "Precompiled"]
    rest, by_rules, other = Tokenizer.from_str(json.dumps(described)), _rules_alone(tokenizer), ""
    for text in [*_ODD, *map(tokenizer.decode, random)]:
        ids = with_eos(tokenizer.encode(text))
        found = rest.encode(by_rules(text)).ids
        if not _alike(found, ids, tokenizer):
            return f"{text!r} has the ids {found}, expected {ids}"
        if not other and not _alike(converted.encode(text).ids, ids, tokenizer):
            other = text
    if other:
        _log.info("%s: the tokenizers library splits %r unlike SentencePiece, but the page does not", name, other)
    return ""


def _rules_alone(tokenizer: SentencePieceTokenizer) -> Callable[[str], str]:
    """Returns a function that applies a model's rules, without its handling of spaces."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model)  # type: ignore[attr-defined] # made at run time
    spec = proto.normalizer_spec
    if spec.name == FOLDING:  # these are steps in the file
        return str
    spec.add_dummy_prefix = spec.remove_extra_whitespaces = spec.escape_whitespaces = False
    return SentencePieceProcessor(model_proto=proto.SerializeToString()).normalize


def _alike(found: list[int], ids: list[int], tokenizer: SentencePieceTokenizer) -> bool:
    """Tells whether ids are equal, or the same pieces in another order: rounding decides between unigram's choices."""
    return found == ids or (sorted(found) == sorted(ids) and tokenizer.decode(found) == tokenizer.decode(ids))
