"""Symbols: what is not language does not pass a model that was trained on symbols in its place (data=catalogs)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from softsearch.errors import InputError
from softsearch.runtime.stages.stage import Stage
from softsearch.text.keep import joined
from softsearch.text.symbols import mask, own_symbols, restored, spans_in

if TYPE_CHECKING:
    from softsearch.runtime.glossary import Wanted
    from softsearch.runtime.line_encoder import LineEncoder
    from softsearch.runtime.translation import Lines, Translation

Spans = Sequence[str] | None  # of a line, in the order of their symbols; None if it was given with symbols


@dataclass(frozen=True, kw_only=True)
class SymbolStage(Stage):
    """Replaces placeholders, tags, addresses and code with symbols, and these in translations with what they were.

    It has no options: ``Stages.for_model`` adds it for a model that reads symbols.
    """

    @property
    def name(self) -> str:
        """For messages."""
        return "symbols"

    @property
    def is_on(self) -> bool:
        """Always: only such a model has it."""
        return True

    def before(self, lines: "Lines", encoder: "LineEncoder") -> "tuple[Lines, list[Spans]]":
        """Replaces what is not language; raises InputError if a line takes too long."""
        texts, kept = list[str](), list[Spans]()
        for text, number in zip(lines.texts, lines.numbers, strict=True):
            tag = encoder.tag(text)
            try:
                masked = mask(text.removeprefix(tag))
            except TimeoutError as error:
                raise InputError(
                    f"line {number}: placeholders and tags in {len(text)} characters take more than a second to find; "
                    "send shorter lines"
                ) from error
            texts.append(tag + masked.text)
            kept.append(None if not masked.spans and own_symbols(masked.text) else masked.spans)
        return lines._replace(texts=texts), kept

    def require(self, text: str) -> "Wanted | None":
        """Finds the symbols, each of which a translation must have."""
        from softsearch.runtime.glossary import Wanted

        kept = tuple(joined(text, own_symbols(text)))
        return Wanted(kept=kept) if kept else None

    def after(self, translations: "list[Translation]", kept: "Sequence[Spans]") -> "list[Translation]":
        """Puts back what the symbols stand for; a symbol too many is left out."""
        return [
            translation if spans is None else _restored(translation, spans)
            for translation, spans in zip(translations, kept, strict=True)
        ]


def _restored(translation: "Translation", spans: Sequence[str]) -> "Translation":
    found = spans_in(translation.text, spans) or spans
    return replace(
        translation,
        text=restored(translation.text, found),
        src_pieces=tuple(restored(piece, spans) or piece for piece in translation.src_pieces),
        tgt_pieces=tuple(restored(piece, found) for piece in translation.tgt_pieces),
        missing_terms=tuple(restored(term, spans) for term in translation.missing_terms),
        alternatives=tuple(_restored(each, spans) for each in translation.alternatives),
    )
