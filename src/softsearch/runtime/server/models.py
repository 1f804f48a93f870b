"""Models as the main process knows them: facts, tokenizers to count tokens, and the check of options."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from softsearch.errors import BundleError, ConfigError, InputError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.facts import model_facts
from softsearch.runtime.manifest import SINGLE
from softsearch.runtime.options import (
    check_options,
    default_batch_tokens,
    make_search,
    needs_alignments,
    refuse_misplaced,
)
from softsearch.runtime.server.errors import LineError
from softsearch.runtime.server.line_queue import Group
from softsearch.text.tokenizer import SentencePieceTokenizer

_SCORE_TOKENS = 1024  # of a batch of pairs, as System.score has
_MAX_GROUPS = 256  # remembered


class Model:
    """A bundle without its graphs, which the worker processes open.

    Raises:
        BundleError: it is for other languages, or a tokenizer is wrong.
    """

    def __init__(self, name: str, bundle: Bundle) -> None:
        if bundle.manifest.is_single:
            raise BundleError(
                f"bundle {bundle.path}: {SINGLE} is for ONNX Runtime in other languages, and softsearch does not run "
                "it; export the checkpoint with format=bundle"
            )
        if bundle.manifest.feature_dim is not None:
            raise BundleError(
                f"bundle {bundle.path} reads feature vectors, and the server takes text alone; use softsearch "
                "translate --features, or Translator.translate(features=...)"
            )
        self.facts = model_facts(name, bundle)
        self._manifest = bundle.manifest
        self._groups: dict[str, Group] = {}  # of options that have been checked
        files = (bundle.manifest.src_tokenizer, bundle.manifest.tgt_tokenizer)
        self._src_tokenizer, self._tgt_tokenizer = (SentencePieceTokenizer(bundle.files[file]) for file in files)

    def translation_group(self, options: Mapping[str, Any], *, prefixes: bool) -> Group:
        """The group of lines with these keywords of :meth:`Translator.translate`, None for the bundle's default.

        Raises:
            ConfigError: an option is unknown, wrong, or needs attention that the model lacks.
        """
        given = {name: value for name, value in options.items() if value is not None}
        # By text, because a list has no hash, and 1 == 1.0 == True, of which one may be wrong.
        key = repr((self.facts.name, prefixes, sorted(given.items())))
        if key not in self._groups:
            if len(self._groups) >= _MAX_GROUPS:
                self._groups.clear()
            self._groups[key] = Group(key, "translate", self.facts.name, given, self._batch_tokens(given))
        return self._groups[key]

    def _batch_tokens(self, given: Mapping[str, Any]) -> int:
        """The token budget of a search with these options, which are checked."""
        searched = {name: value for name, value in given.items() if name not in ("search", "replace_unknown")}
        kind = given.get("search", self._manifest.search_kind)
        refuse_misplaced(searched)
        if not isinstance(given.get("replace_unknown", False), bool):
            raise ConfigError("replace_unknown is a dictionary, expected true or false from a client")
        check_options(kind, searched)
        search = make_search(self._manifest, self._tgt_tokenizer, kind, searched)
        if (needs_alignments(search) or given.get("replace_unknown")) and not self.facts.has_attention:
            raise ConfigError(
                f"model {self.facts.name} has no attention, which alignments, a coverage penalty and the replacement "
                "of unknown words need; leave the option out"
            )
        return default_batch_tokens(search)

    def score_group(self) -> Group:
        """The group of pairs to score."""
        return Group(f"score {self.facts.name}", "score", self.facts.name, {}, _SCORE_TOKENS)

    def count_tokens(self, src: Sequence[str], tgt: Sequence[str] | None = None) -> list[int]:
        """The tokens of each line, EOS included; of pairs, of the longer side.

        Raises:
            LineError: a line has a lone surrogate.
        """
        counts = [_count(self._src_tokenizer, line, index) for index, line in enumerate(src)]
        if tgt is None:
            return counts
        return [
            max(count, _count(self._tgt_tokenizer, line, index))
            for index, (count, line) in enumerate(zip(counts, tgt, strict=True))
        ]


def open_models(bundles: Mapping[str, Path]) -> dict[str, Model]:
    """Opens and verifies the bundles as they are on disk now.

    Raises:
        BundleError: one is missing, altered, of a newer format or for other languages.
    """
    return {name: Model(name, Bundle.open(path)) for name, path in bundles.items()}


def _count(tokenizer: SentencePieceTokenizer, line: str, index: int) -> int:
    try:
        return len(tokenizer.encode(line)) + 1
    except InputError as error:
        raise LineError(index, f"line {index + 1}: {error}") from error
