"""Lines as token ids: parts of lines too long for the model, prefixes of translations, and pairs to score.

It needs no model, so a server can encode a line once, before a worker process translates it.
"""

import re
from collections.abc import Iterable, Sequence

from softsearch.errors import BundleError, ConfigError, InputError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.manifest import Manifest
from softsearch.runtime.translation import Lines, Part, encode_whole, feature_parts, split_text, text_lines
from softsearch.text.corpus import is_blank
from softsearch.text.features import Features
from softsearch.text.languages import Languages, languages_of
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers
from softsearch.text.vocabulary import SOURCE_SEPARATOR, UNK

_LINE_ENDS = re.compile(r"[\r\n]+")
_MAX_PARTS = 16  # approximately; a line of more parts is refused instead of split, because it is not text


def open_tokenizers(bundle: Bundle) -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    """The tokenizers of a bundle for source and target.

    Raises:
        BundleError: one is damaged, or its size differs from the manifest's.
    """
    manifest = bundle.manifest
    return (
        _open_tokenizer(bundle, manifest.src_tokenizer, manifest.src_vocab_size, reverse=manifest.src_reversed),
        _open_tokenizer(bundle, manifest.tgt_tokenizer, manifest.tgt_vocab_size, reverse=manifest.tgt_reversed),
    )


def _open_tokenizer(bundle: Bundle, name: str, vocab_size: int, *, reverse: bool) -> SentencePieceTokenizer:
    try:
        tokenizer = SentencePieceTokenizer(bundle.files[name], reverse=reverse)
    except BundleError as error:
        raise BundleError(f"bundle {bundle.path}: {name}: {error}") from error
    if tokenizer.vocab_size != vocab_size:
        raise BundleError(
            f"bundle {bundle.path}: {name} has {tokenizer.vocab_size} entries, but manifest.json says {vocab_size}; "
            "export the bundle again"
        )
    return tokenizer


class LineEncoder:
    """Encodes lines for a model.

    Args:
        tokenizers: for source and target.
        max_src_tokens: the longest source, EOS included; longer lines are split.
        manifest: the bundle's manifest; its limit on the length of translations also applies to those to score.
        is_plain: whether lines are plain text, which is tokenized and lower-cased for the model.
        src_lang: the languages of several sources, such as ``en+fr``; by default the bundle's.
    """

    def __init__(
        self, tokenizers: Tokenizers, max_src_tokens: int, manifest: Manifest, *, is_plain: bool, src_lang: str = ""
    ) -> None:
        self.tokenizers, self.max_src_tokens = tokenizers, max_src_tokens
        self.is_plain = is_plain
        trained_src_lang, tgt_lang = (manifest.trained(f"config.data.{side}_lang") for side in ("src", "tgt"))
        self.trained_languages = src_lang or trained_src_lang, tgt_lang
        self._max_tgt_tokens = manifest.strategy.lengths(max_src_tokens - 1).most

    def one_line(self, text: str) -> str:
        """Returns a source text as one line, in the form that the model reads."""
        return self.form(_LINE_ENDS.sub(" ", text), 0)

    def form(self, text: str, side: int) -> str:
        """A source (0) or target (1) text in the form that the model reads or writes."""
        if not self.is_plain:
            return text
        from softsearch.text.joint_sources import tokenize_sources  # most models read plain text

        return tokenize_sources(self.tokenizers[side].normalized(text), self.trained_languages[side])

    def ids(self, text: str, side: int) -> list[int]:
        """Encodes a source (0) or target (1) text of any length."""
        return self.tokenizers[side].encode(self.form(text, side))

    @property
    def languages(self) -> Languages:
        """The languages that a request can name."""
        return languages_of(self.tokenizers[0])

    def tagged(self, lines: Iterable[str], tgt: str | None, src: str | None) -> Iterable[str]:
        """Lines with tags for a request's languages, by default those that the model was trained on.

        Raises:
            ConfigError: the model has no such language; the returned iterable raises as `Languages.tagged` does.
        """
        trained = self.trained_languages
        names = [self.languages.check(*args) for args in (("src", src, trained[0]), ("tgt", tgt, trained[1]))]
        return self.languages.tagged(lines, names[1], names[0]) if self.languages.targets else lines

    def parts(self, line: str, number: int) -> list[Part]:
        """The parts of a line, whose number is for messages; none if the line is blank or empty to the model.

        Raises:
            InputError: the line has a lone surrogate or is far too long.
        """
        limit, encode = self.max_src_tokens, self.tokenizers[0].encode
        try:
            text = self.one_line(line)
            ids = [] if is_blank(text) else encode(text)
        except InputError as error:
            raise InputError(f"line {number}: {error}") from error
        if not ids:
            return []
        if len(ids) < limit:
            return [Part(text, ids)]
        if len(ids) > _MAX_PARTS * limit:
            raise InputError(
                f"line {number} has {len(text)} characters, {len(ids)} tokens; expected at most {_MAX_PARTS * limit} "
                f"tokens (the model reads {limit} at once), so put one sentence on each line"
            )
        if SOURCE_SEPARATOR in text.split() and self.tokenizers[0].reads_several_sources:
            raise InputError(
                f"line {number} has {len(ids)} tokens, and its sources cannot be split together; expected fewer than "
                f"{limit} tokens, so shorten it"
            )
        tag = self.tag(text)
        texts = [tag + part for part in split_text(text.removeprefix(tag), lambda p: len(encode(tag + p)) < limit)]
        return [Part(part, encode(part)) for part in texts]

    def sources(self, lines: Lines | None, features: Features | None, first_line: int) -> list[list[Part]]:
        """The parts of each line, or of each example of features; ``first_line`` is the number of the first.

        Raises:
            InputError: as in `parts`; or text or features that the model reads are missing.
            CorpusError: the features have the wrong type or shape, or a value is not finite.
        """
        if features is not None:
            texts = None if lines is None else list(map(self.one_line, lines.texts))
            return list(feature_parts(features, texts, self.tokenizers[0], self.max_src_tokens, first_line))
        if lines is None:
            raise InputError("expected lines of text, or features for a model that reads them")
        return [self.parts(line, number) for line, number in zip(lines.texts, lines.numbers, strict=True)]

    def tag(self, text: str) -> str:
        """The language tags that start a text, if the model knows them; every part of the text needs them."""
        return self.languages.tags(text)

    def prefix(self, text: str, number: int) -> list[int]:
        """The ids that the translation of the line with this number must begin with.

        Raises:
            InputError: the vocabulary lacks a part of the text.
            ConfigError: the model writes from the end of a text to its start.
        """
        tokenizer = self.tokenizers[1]
        if tokenizer.reverse:
            raise ConfigError(
                "target prefixes were given, but this model writes from the end of a text to its start; leave them out"
            )
        ids = self.ids(text, 1)
        if UNK in ids:
            raise InputError(f"line {number}: the model's vocabulary lacks a part of the prefix {text!r}; change it")
        return ids

    def prefixes(self, texts: Iterable[str], count: int, first_line: int) -> list[list[int]]:
        """The ids of the prefixes of ``count`` lines; ``first_line`` is the number of the first.

        Raises:
            InputError: as in `prefix`, or there is not one prefix for each line.
            ConfigError: as in `prefix`.
        """
        prefixes = list(text_lines("prefixes", texts, first_line))
        if len(prefixes) != count:
            raise InputError(f"{len(prefixes)} prefixes for {count} lines, expected one for each")
        return [self.prefix(prefix, number) for number, prefix in enumerate(prefixes, first_line)]

    def starts(
        self, sources: Sequence[Sequence[Part]], prefixes: Sequence[Sequence[int]] | None
    ) -> list[list[int]] | None:
        """The required beginning of the translation of each part of each line: the prefix for the first part."""
        if prefixes is None:
            return None
        lines = zip(sources, prefixes, strict=True)
        begin = self.languages.start
        return [[*begin(part.ids), *(ids if i == 0 else ())] for line, ids in lines for i, part in enumerate(line)]

    def pairs(
        self, sides: tuple[Sequence[str], Sequence[str]], names: tuple[object, object], first_line: int
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Sources and translations to score, no ids for blank lines; messages use ``names`` and ``first_line``.

        Raises:
            InputError: a line has too many tokens for the model, or the numbers of lines differ.
        """
        if len(sides[0]) != len(sides[1]):
            raise InputError(f"{len(sides[0])} sources, but {len(sides[1])} translations to score; expected as many")
        if self.tokenizers[0].reads_symbols:
            both = [self._masked_pair(*pair) for pair in zip(*sides, strict=True)]
            sides = [source for source, _ in both], [target for _, target in both]

        def encode(side: int, limit: int) -> list[list[int]]:
            numbered = enumerate((self.form(line, side) for line in sides[side]), first_line)
            tokenizer, name = self.tokenizers[side], names[side]
            return [encode_whole(tokenizer.encode, line, f"{name}:{number}", limit) for number, line in numbered]

        return encode(0, self.max_src_tokens), encode(1, self._max_tgt_tokens)

    def _masked_pair(self, source: str, target: str) -> tuple[str, str]:
        """A pair with symbols for what is not language; the target stays as it is if it has other such parts."""
        from softsearch.text.symbols import mask, mask_pair  # few models read symbols

        tag = self.tag(source)
        text = source.removeprefix(tag)
        masked = mask_pair(text, target) or (mask(text).text, target)
        return tag + masked[0], masked[1]
