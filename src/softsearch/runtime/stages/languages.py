"""Languages: tags for models that read or write several."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from softsearch.option import Option
from softsearch.runtime.stages.stage import Stage

if TYPE_CHECKING:
    from softsearch.runtime.line_encoder import LineEncoder
    from softsearch.runtime.translation import Lines


@dataclass(frozen=True, kw_only=True)
class LanguageStage(Stage):
    """Begins lines with the tags of languages, by default those that the model was trained on."""

    tgt: Annotated[
        str | None, Option("translate into this language, if the model has several", "de", metavar="CODE")
    ] = None
    src: Annotated[str | None, Option("the language of the text, if the model has several", "en", metavar="CODE")] = (
        None
    )

    @property
    def is_on(self) -> bool:
        """Also without options."""
        return True

    def before(self, lines: "Lines", encoder: "LineEncoder") -> "tuple[Lines, Any]":
        """Adds the tags; raises ConfigError if the model lacks a language."""
        return lines._replace(texts=list(encoder.tagged(lines.texts, self.tgt, self.src))), None
