"""The manifest of a bundle, checked value by value before anything else is read."""

import json
import re
from dataclasses import dataclass
from typing import Any, TypeVar

import softsearch
from softsearch.errors import BundleError, ConfigError, printable
from softsearch.runtime.options import read_search
from softsearch.text.vocabulary import BOS, EOS, PAD, UNK

FORMAT_VERSION = 1
ENCODER = "encoder.onnx"
DECODER_STEP = "decoder_step.onnx"
SPECIAL_IDS = {"pad": PAD, "unk": UNK, "bos": BOS, "eos": EOS}
MIN_SRC_TOKENS, MAX_SRC_TOKENS = 8, 1 << 14  # what limits.max_src_tokens may be
_MAX_FILES = 64
_MAX_FILE_BYTES = 2 << 30  # what one protobuf message, and so one ONNX graph without external data, can hold
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_T = TypeVar("_T")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class FileEntry:
    """What the manifest says of one file."""

    sha256: str
    size: int  # bytes


@dataclass(frozen=True)
class Manifest:
    """The checked contents of a manifest; characters that are not printable are escaped."""

    softsearch_version: str  # that wrote the bundle
    files: dict[str, FileEntry]
    src_tokenizer: str  # file name
    tgt_tokenizer: str  # file name; the same as src_tokenizer when joint
    src_vocab_size: int
    tgt_vocab_size: int
    src_reversed: bool  # token ids run from the end of the text to its start
    tgt_reversed: bool
    graphs: dict[str, Any]  # "encoder" and "decoder_step": names, dtypes and shapes of inputs and outputs
    max_src_tokens: int  # of one sentence, EOS included
    search_kind: str  # of the recommended search
    search: dict[str, Any]  # its arguments, all but those that are the caller's
    training: dict[str, Any]  # facts for people

    @classmethod
    def parse(cls, text: bytes) -> "Manifest":
        """Reads and checks the bytes of ``manifest.json``.

        Raises:
            BundleError: it is no JSON object, of a newer format, or a value is missing or wrong.
        """
        values = _Values(_load(text))
        version = values.integer("format_version", at_least=1)
        if version > FORMAT_VERSION:
            needed = values.text("softsearch_version")[:40]
            raise BundleError(
                f"the bundle needs softsearch >= {needed}: its format_version is {version}, "
                f"and softsearch {softsearch.__version__} reads up to {FORMAT_VERSION}; upgrade softsearch"
            )
        tgt_vocab_size = values.integer("vocab_sizes.tgt", at_least=len(SPECIAL_IDS))
        try:
            search_kind, search = read_search(values.table("search"), tgt_vocab_size)
        except ConfigError as error:
            raise BundleError(f"manifest.json: {error}; export the bundle again") from error
        manifest = cls(
            softsearch_version=values.text("softsearch_version"),
            files=_files(values),
            src_tokenizer=values.text("tokenizers.src"),
            tgt_tokenizer=values.text("tokenizers.tgt"),
            src_vocab_size=values.integer("vocab_sizes.src", at_least=len(SPECIAL_IDS)),
            tgt_vocab_size=tgt_vocab_size,
            src_reversed=values.flag("reversed.src"),
            tgt_reversed=values.flag("reversed.tgt"),
            graphs={"encoder": values.table("graphs.encoder"), "decoder_step": values.table("graphs.decoder_step")},
            max_src_tokens=values.integer("limits.max_src_tokens", at_least=MIN_SRC_TOKENS, at_most=MAX_SRC_TOKENS),
            search_kind=search_kind,
            search=search,
            training=values.table("training"),
        )
        for name in (ENCODER, DECODER_STEP, manifest.src_tokenizer, manifest.tgt_tokenizer):
            if name not in manifest.files:
                raise BundleError(f"manifest.json: files lists {sorted(manifest.files)}, expected {name!r} among them")
        if values.table("special_ids") != SPECIAL_IDS:
            raise BundleError(f"manifest.json: special_ids is {values.table('special_ids')}, expected {SPECIAL_IDS}")
        return manifest

    def trained(self, key: str) -> str:
        """A fact of the training by its dotted key, as text; "" where there is none."""
        value = _Values(self.training).get(key)
        return "" if value is None else str(value)


class _Values:
    """Typed access by dotted key; every miss is a BundleError that names the key, the value and what was expected."""

    def __init__(self, tree: dict[str, Any]) -> None:
        self._tree = tree

    def integer(self, key: str, *, at_least: int, at_most: int = _MAX_FILE_BYTES) -> int:
        value = self.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not at_least <= value <= at_most:
            raise self._error(key, value, f"an integer from {at_least} to {at_most}")
        return value

    def text(self, key: str) -> str:
        return self._typed(key, str, "a string")

    def flag(self, key: str) -> bool:
        return self._typed(key, bool, "true or false")

    def table(self, key: str) -> dict[str, Any]:
        return self._typed(key, dict, "an object")

    def _typed(self, key: str, kind: type[_T], expected: str) -> _T:
        value = self.get(key)
        if not isinstance(value, kind):
            raise self._error(key, value, expected)
        return value

    def get(self, key: str) -> Any:
        """Any value; None where the manifest has nothing there."""
        value: Any = self._tree
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    @staticmethod
    def _error(key: str, value: object, expected: str) -> BundleError:
        shown = "missing" if value is None else f"{str(value)[:80]!r}"
        return BundleError(f"manifest.json: {key} is {shown}, expected {expected}; export the bundle again")


def _load(text: bytes) -> dict[str, Any]:
    try:
        tree = _printable(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise BundleError(f"manifest.json is no valid JSON ({error}); copy or export the bundle again") from error
    if not isinstance(tree, dict):
        raise BundleError(f"manifest.json holds a {type(tree).__name__}, expected an object; export the bundle again")
    return tree


def _printable(value: Any) -> Any:
    """The same with all text made printable: much of it is shown to people."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_printable(item) for item in value]
    if isinstance(value, dict):
        return {printable(key): _printable(item) for key, item in value.items()}
    return value


def _files(values: _Values) -> dict[str, FileEntry]:
    names = values.table("files")
    if len(names) > _MAX_FILES:
        raise BundleError(f"manifest.json: files lists {len(names)} files, expected at most {_MAX_FILES}")
    files: dict[str, FileEntry] = {}
    for name, entry in names.items():
        # Checked before the name goes into a path or a dotted key.
        if not _PLAIN_NAME.fullmatch(name) or name.startswith("manifest."):
            raise BundleError(
                f"manifest.json: files lists {name[:80]!r}, expected a plain file name; do not use this bundle"
            )
        facts = _Values(entry if isinstance(entry, dict) else {})
        size, sha256 = facts.integer("bytes", at_least=0), facts.text("sha256")
        if not _SHA256.fullmatch(sha256):
            raise BundleError(f"manifest.json: sha256 of {name} is {sha256[:80]!r}, expected 64 hexadecimal digits")
        files[name] = FileEntry(sha256, size)
    return files
