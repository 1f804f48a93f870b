"""Models as the main process knows them: they encode lines and check options, but have no graphs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softsearch.errors import BundleError, ConfigError
from softsearch.extras.serve.facts import model_facts
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.line_encoder import LineEncoder, open_tokenizers
from softsearch.runtime.manifest import SINGLE
from softsearch.runtime.options import Strategy, check_options, default_batch_tokens, make_search, needs_alignments
from softsearch.runtime.paragraphs import Paragraph

_SCORE_TOKENS = 1024  # of a batch of pairs, as System.score has


class Model:
    """A bundle without its graphs, which the worker processes open.

    Raises:
        BundleError: it is not for this runtime, or a tokenizer is wrong.
    """

    def __init__(self, name: str, bundle: Bundle) -> None:
        manifest = bundle.manifest
        if manifest.is_single:
            raise BundleError(
                f"bundle {bundle.path}: {SINGLE} is for other programming languages, and softsearch does not run it; "
                "export the checkpoint with format=bundle"
            )
        if manifest.feature_dim is not None:
            raise BundleError(
                f"bundle {bundle.path} reads feature vectors, and the server takes text alone; use softsearch "
                "translate --features, or Translator.translate(features=...)"
            )
        self.facts, self._manifest = model_facts(name, bundle), manifest
        self._encoder = LineEncoder(
            open_tokenizers(bundle), manifest.max_src_tokens, manifest, is_plain=manifest.text_form == "lc_tok"
        )

    def translation_group(self, options: Mapping[str, Any], *, prefixes: bool) -> "Group":
        """The group of lines with these search options; those left out are as the bundle recommends.

        Raises:
            ConfigError: an option is unknown, wrong, or needs attention that the model lacks.
        """
        kind = options.get("search", self.facts.search)
        searched = {name: value for name, value in options.items() if name != "search"}
        check_options(kind, [*searched, *(["prefix"] if prefixes else [])])
        search = make_search(self._manifest.search, self._encoder.tokenizers[1], kind, searched)
        if needs_alignments(search) and not self.facts.has_attention:
            raise ConfigError(
                f"model {self.facts.name} has no attention, which alignments and a coverage penalty need; leave the "
                "option out"
            )
        return Group(self, search, default_batch_tokens(search), prefixes, options)

    def score_group(self) -> "Group":
        """The group of pairs to score."""
        return Group(self, None, _SCORE_TOKENS, True)

    def paragraphs(self, texts: Sequence[str]) -> list[Paragraph]:
        """The sentences of each text.

        Raises:
            ConfigError: the model reads several sources.
        """
        return self._encoder.paragraphs(texts)

    def encode(self, group: "Group", text: str, other: str | None, number: int) -> tuple[Any, Any, int]:
        """The source and the target of a line as workers take them, and the tokens of the longer one, EOS included.

        Raises:
            InputError: the line with this number, or its prefix, cannot be encoded.
        """
        if group.search is None:
            (src,), (tgt,) = self._encoder.pairs(([text], [other or ""]), ("source", "target"), number)
            return src, tgt, max(len(src), len(tgt)) + 1
        parts = self._encoder.parts(text, number)
        prefix = None if other is None else self._encoder.prefix(other, number)
        return parts, prefix, sum(len(part.ids) for part in parts) + 1


@dataclass(frozen=True)
class Group:
    """What lines have in common that may share a batch."""

    model: Model
    search: Strategy | None  # None: pairs are scored
    batch_tokens: int  # the most of a batch, padding included
    pairs: bool  # each line has a prefix, or a translation to score
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)  # from which the search was made

    def of(self, model: Model) -> "Group":
        """The same group of another model, which a reload has put in the place of this one."""
        if self.search is None:
            return model.score_group()
        return model.translation_group(self.options, prefixes=self.pairs)


def open_models(bundles: Mapping[str, Path]) -> dict[str, Model]:
    """Opens and verifies the bundles on disk.

    Raises:
        BundleError: one is missing, altered, of a newer format or not for this runtime.
    """
    return {name: Model(name, Bundle.open(path)) for name, path in bundles.items()}


def hashes(models: Mapping[str, Model]) -> dict[str, str]:
    """The hashes that identify the models' bundles."""
    return {name: model.facts.sha256 for name, model in models.items()}
