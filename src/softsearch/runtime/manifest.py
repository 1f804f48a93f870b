"""Manifest of a bundle, checked value by value before anything else is read."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import softsearch
from softsearch.errors import BundleError, ConfigError, printable
from softsearch.ranges import MAX_SRC_TOKENS, MIN_SRC_TOKENS, Range, in_words
from softsearch.runtime.options import Strategy, read_search, strategy_class
from softsearch.text.plain_values import parse, read_json
from softsearch.text.vocabulary import BOS, EOS, PAD, UNK

FORMAT_VERSION = 2  # of bundles with a file of constants; 1 of all others
ENCODER = "encoder.onnx"
DECODER_STEP = "decoder_step.onnx"
DECODER_BLOCK = "decoder_block.onnx"  # several steps with the beam's choices, without the step's constants
DECODER_GREEDY = "decoder_greedy.onnx"  # the same for one sentence with a beam of 1
EMBEDDING_TABLE = "embedding_table"  # a constant of the step, and an encoder input if both share it
FEATURES = "src_features"  # an encoder input, if the model reads feature vectors
SINGLE = "model.onnx"  # replaces both graphs and includes the search
SPECIAL_IDS = {"pad": PAD, "unk": UNK, "bos": BOS, "eos": EOS}
_MAX_FILES = 64
DATA_SUFFIX = ".data"  # of the file with the large constants of a large graph
_MAX_FILE_BYTES = (2 << 30) - 1  # what one protobuf message, and so one ONNX graph without external data, can hold
_MAX_BUNDLE_BYTES = 32 << 30  # eight billion weights of float32
_MAX_TOKENIZER_BYTES = 64 << 20  # several million pieces
_MAX_FEATURE_DIM = 1 << 16
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class FileEntry:
    """The manifest's entry for a file."""

    sha256: str
    size: int  # bytes


@dataclass(frozen=True)
class Manifest:
    """The checked contents of a manifest; characters that are not printable are escaped."""

    softsearch_version: str  # version that wrote the bundle
    files: dict[str, FileEntry]
    src_tokenizer: str  # file name
    tgt_tokenizer: str  # file name; the same as src_tokenizer when joint
    src_vocab_size: int
    tgt_vocab_size: int
    src_reversed: bool  # token ids run from the end of the text to its start
    tgt_reversed: bool
    graphs: dict[str, Any]  # names, dtypes, shapes of inputs and outputs, by file name without .onnx
    max_src_tokens: int  # per sentence, EOS included
    search_kind: str  # the recommended search
    search: dict[str, Any]  # its arguments, except the caller's
    training: dict[str, Any]  # facts for people

    @property
    def strategy(self) -> Strategy:
        """The recommended search."""
        return strategy_class(self.search_kind)(**self.search)

    @classmethod
    def parse(cls, text: bytes) -> "Manifest":
        """Reads and checks the bytes of ``manifest.json``.

        Raises:
            BundleError: it is not a JSON object, has a newer format, or a value is missing or wrong.
        """
        tree = _load(text)
        version = _integer(tree, "format_version", 1)
        if version > FORMAT_VERSION:
            needed = _value(tree, "softsearch_version", str)[:40]
            raise BundleError(
                f"the bundle needs softsearch >= {needed}: its format_version is {version}, "
                f"and softsearch {softsearch.__version__} reads up to {FORMAT_VERSION}; upgrade softsearch"
            )
        tgt_vocab_size = _integer(tree, "vocab_sizes.tgt", len(SPECIAL_IDS))
        graphs = ["encoder", "decoder_step"] if _get(tree, "graphs.model") is None else ["model"]
        blocks = (file.removesuffix(".onnx") for file in (DECODER_BLOCK, DECODER_GREEDY))
        graphs += [name for name in blocks if _get(tree, f"graphs.{name}") is not None]
        try:
            search_kind, search = read_search(_value(tree, "search", dict), tgt_vocab_size)
        except ConfigError as error:
            raise BundleError(f"manifest.json: {error}; export the bundle again") from error
        manifest = cls(
            softsearch_version=_value(tree, "softsearch_version", str),
            files=_files(tree),
            src_tokenizer=_value(tree, "tokenizers.src", str),
            tgt_tokenizer=_value(tree, "tokenizers.tgt", str),
            src_vocab_size=_integer(tree, "vocab_sizes.src", len(SPECIAL_IDS)),
            tgt_vocab_size=tgt_vocab_size,
            src_reversed=_value(tree, "reversed.src", bool),
            tgt_reversed=_value(tree, "reversed.tgt", bool),
            graphs={name: _graph(tree, f"graphs.{name}") for name in graphs},
            max_src_tokens=_integer(tree, "limits.max_src_tokens", MIN_SRC_TOKENS, MAX_SRC_TOKENS),
            search_kind=search_kind,
            search=search,
            training=_value(tree, "training", dict),
        )
        for name in (*(f"{graph}.onnx" for graph in graphs), manifest.src_tokenizer, manifest.tgt_tokenizer):
            if name not in manifest.files:
                raise BundleError(f"manifest.json: files lists {sorted(manifest.files)}, expected {name!r} among them")
        for name in (manifest.src_tokenizer, manifest.tgt_tokenizer):
            _refuse_size(f"the size of {name}", manifest.files[name].size, _MAX_TOKENIZER_BYTES)
        _refuse_size("the sum of all files", sum(entry.size for entry in manifest.files.values()), _MAX_BUNDLE_BYTES)
        special_ids = _value(tree, "special_ids", dict)
        if special_ids != SPECIAL_IDS:
            raise BundleError(f"manifest.json: special_ids is {special_ids}, expected {SPECIAL_IDS}")
        return manifest

    @property
    def is_single(self) -> bool:
        """Tells whether the bundle is one graph with the search inside, for other programming languages."""
        return "model" in self.graphs

    @property
    def feature_dim(self) -> int | None:
        """The width of the feature vectors that the model reads; None if it reads text.

        Raises:
            BundleError: it is not a fixed number, or too large.
        """
        for port in () if self.is_single else self.graphs["encoder"]["inputs"]:
            if port["name"] == FEATURES:
                shape = port.get("shape")
                dim = shape[2] if isinstance(shape, list) and len(shape) == 3 else None
                if type(dim) is not int or not 0 < dim <= _MAX_FEATURE_DIM:
                    expected = f"[sentences, src_len, a number up to {_MAX_FEATURE_DIM}]"
                    raise _error(f"graphs.encoder.{FEATURES}", shape, expected)
                return dim
        return None

    @property
    def text_form(self) -> Literal["plain", "lc_tok"]:
        """The form of the text that the model was trained on; ``lc_tok`` is lower-cased and tokenized."""
        recorded = (self.trained("config.data.variant"), self.trained("config.data.text_form"))
        return "lc_tok" if "lc_tok" in recorded else "plain"

    def trained(self, key: str) -> str:
        """A training fact as text, by dotted key; "" if there is none."""
        value = _get(self.training, key)
        return "" if value is None else str(value)


def _get(tree: Any, key: str) -> Any:
    """The value at a dotted key; None if there is none."""
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def _value(tree: Any, key: str, hint: Any) -> Any:
    """The value at a dotted key, which must exist."""
    if (value := _get(tree, key)) is None:
        raise _error(key, value, in_words(hint))
    try:
        return parse(value, hint, key)
    except ValueError as error:
        raise BundleError(f"manifest.json: {error}; export the bundle again") from error


def _graph(tree: dict[str, Any], key: str) -> dict[str, Any]:
    """The inputs and outputs of a graph by name; other details are compared with the graph later."""
    graph = _value(tree, key, dict)
    for side in ("inputs", "outputs"):
        ports = _value(tree, f"{key}.{side}", list)
        if not all(isinstance(port, dict) and isinstance(port.get("name"), str) for port in ports):
            raise _error(f"{key}.{side}", ports, "objects with a name")
    return graph


def _integer(tree: Any, key: str, least: int, most: int = _MAX_FILE_BYTES) -> int:
    return int(_value(tree, key, Annotated[int, Range(least, most)]))


def _refuse_size(what: str, size: int, most: int) -> None:
    if size > most:
        raise BundleError(f"manifest.json: {what} is {size} bytes, expected at most {most}; do not use this bundle")


def _error(key: str, value: object, expected: str) -> BundleError:
    shown = "missing" if value is None else f"{str(value)[:80]!r}"
    return BundleError(f"manifest.json: {key} is {shown}, expected {expected}; export the bundle again")


def _load(text: bytes) -> dict[str, Any]:
    try:
        tree = _printable(read_json(text))
    except ValueError as error:
        raise BundleError(f"manifest.json is not valid JSON ({error}); copy or export the bundle again") from error
    if not isinstance(tree, dict):
        raise BundleError(f"manifest.json holds a {type(tree).__name__}, expected an object; export the bundle again")
    return tree


def _printable(value: Any) -> Any:
    """Makes all text in a tree printable, because much of it is displayed."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_printable(item) for item in value]
    if isinstance(value, dict):
        return {printable(key): _printable(item) for key, item in value.items()}
    return value


def _files(tree: dict[str, Any]) -> dict[str, FileEntry]:
    names = _value(tree, "files", dict)
    if len(names) > _MAX_FILES:
        raise BundleError(f"manifest.json: files lists {len(names)} files, expected at most {_MAX_FILES}")
    files: dict[str, FileEntry] = {}
    for name, entry in names.items():
        # Checked before the name is used in a path or a dotted key.
        if not _PLAIN_NAME.fullmatch(name) or name.startswith("manifest."):
            raise BundleError(
                f"manifest.json: files lists {name[:80]!r}, expected a plain file name; do not use this bundle"
            )
        most = _MAX_BUNDLE_BYTES if name.endswith(DATA_SUFFIX) else _MAX_FILE_BYTES
        size, sha256 = _integer(entry, "bytes", 0, most), _value(entry, "sha256", str)
        if not _SHA256.fullmatch(sha256):
            raise BundleError(f"manifest.json: sha256 of {name} is {sha256[:80]!r}, expected 64 hexadecimal digits")
        files[name] = FileEntry(sha256, size)
    return files
