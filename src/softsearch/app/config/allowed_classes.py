"""Classes that a loaded file may name, and their construction.

A checkpoint may come from anybody. The config inside it may name only the classes below, none of which opens,
downloads or writes anything when built; nothing is imported because a file names it, and no interpolation is resolved.
It may name files to read only as the checkpoint of a run's folder (RUN/checkpoints beside RUN/config.yaml), and none of
the system's below /proc, /sys and /dev; an address of a server is never taken from it.
What people type or write in YAML goes through :func:`softsearch.app.config.validation.build` and may name anything.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from softsearch.app.config.validation import check
from softsearch.data.corpora.base import ParallelSource, Unread
from softsearch.data.corpora.features import FeatureFiles
from softsearch.data.corpora.multi30k import Multi30k
from softsearch.data.corpora.multi_source import MultiSource
from softsearch.data.corpora.multilingual import Multilingual
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.corpora.shapes import Shapes
from softsearch.data.corpora.spellout import Spellout
from softsearch.errors import CheckpointError, in_short
from softsearch.models.bi_scale import BiScaleDecoder
from softsearch.models.cells import ElmanCell, GRUCell, InputForgetCell, LSTMCell
from softsearch.models.char_encoder import CharacterEncoder
from softsearch.models.conditional_gru import ConditionalGRUDecoder
from softsearch.models.conv_encoder import ConvolutionalEncoder, NgramEncoder
from softsearch.models.decoder_only import DecoderOnlyRNN, DecoderOnlyTransformer, SourceEmbeddings
from softsearch.models.embeddings import Embeddings
from softsearch.models.feed_forward_lm import FeedForwardDecoder
from softsearch.models.interface import Seq2Seq
from softsearch.models.luong import LuongDecoder
from softsearch.models.multi_source import MultiSourceDecoder, MultiSourceEncoder
from softsearch.models.ngram import NGramDecoder
from softsearch.models.output_layers import ClassFactored, HierarchicalSoftmax
from softsearch.models.pointer_generator import PointerGeneratorDecoder
from softsearch.models.rctm import RCTM2Decoder, RCTMDecoder
from softsearch.models.recurrent import EncoderDecoder, NoSource, RecurrentDecoder, RecurrentEncoder
from softsearch.models.rnnencdec import RNNencdecDecoder
from softsearch.models.rnnsearch import RNNsearchDecoder
from softsearch.models.sennrich_lecture import LookUpdateGenerateDecoder
from softsearch.models.show_attend_tell import FeatureEncoder, ShowAttendTellDecoder
from softsearch.models.transformer import TransformerDecoder, TransformerEncoder
from softsearch.text.filters import Filters

MODEL_CLASSES: tuple[type, ...] = (
    Seq2Seq,
    EncoderDecoder,
    Embeddings,
    ElmanCell,
    GRUCell,
    InputForgetCell,
    LSTMCell,
    CharacterEncoder,
    ClassFactored,
    HierarchicalSoftmax,
    ConvolutionalEncoder,
    NgramEncoder,
    FeatureEncoder,
    MultiSourceEncoder,
    NoSource,
    RecurrentEncoder,
    SourceEmbeddings,
    TransformerEncoder,
    BiScaleDecoder,
    ConditionalGRUDecoder,
    DecoderOnlyRNN,
    DecoderOnlyTransformer,
    FeedForwardDecoder,
    LookUpdateGenerateDecoder,
    LuongDecoder,
    NGramDecoder,
    PointerGeneratorDecoder,
    MultiSourceDecoder,
    RecurrentDecoder,
    RNNencdecDecoder,
    RNNsearchDecoder,
    RCTMDecoder,
    RCTM2Decoder,
    ShowAttendTellDecoder,
    TransformerDecoder,
)
DATA_CLASSES: tuple[type, ...] = (
    FeatureFiles,
    Filters,
    Multi30k,
    Multilingual,
    MultiSource,
    Parallel,
    Shapes,
    Spellout,
)


_FILES = ("train", "val", "test", "root")  # options of data sources that name files
_ADDRESSES = ("mirror",)
_SYSTEM = ("/proc", "/sys", "/dev")


def name_of(cls: type) -> str:
    """Returns the full name of a class, as ``_target_`` has it."""
    return f"{cls.__module__}.{cls.__qualname__}"


def build_from_file(path: Path, key: Literal["model", "data"], node: dict[str, Any], **given: int) -> Any:
    """Builds the model or the data source that a file's config describes.

    Args:
        path: the file, for messages.
        key: the node's key in the config.
        node: as the file has it.
        given: further arguments: the vocabulary sizes of a model.

    Raises:
        CheckpointError: the node names a class that a file may not name, or does not fit this version's classes.
    """
    kind: type = Seq2Seq if key == "model" else ParallelSource
    allowed = {name_of(cls): cls for cls in (MODEL_CLASSES if key == "model" else DATA_CLASSES)}
    _refuse(path, key, node, allowed)
    try:
        check(node, key, given=given)
        built = _construct(node, allowed, _belongs_to_run(path), **given)
    except Exception as error:  # a constructor may raise anything on values that it was not made for
        raise CheckpointError(
            f"{path}: {key} of its config cannot be built ({in_short(error)}); expected a checkpoint of "
            "src/train.py of this version: take another file, or train again"
        ) from error
    if not isinstance(built, kind):
        raise CheckpointError(f"{path}: {key} of its config is a {type(built).__name__}, expected a {kind.__name__}")
    return built


def _refuse(path: Path, key: str, node: Any, allowed: Mapping[str, type]) -> None:
    """Checks the whole node before any of it is built."""
    if isinstance(node, list):
        for index, value in enumerate(node):
            _refuse(path, f"{key}[{index}]", value, allowed)
    if not isinstance(node, dict):
        return
    if "_target_" in node and node["_target_"] not in list(allowed):  # a list, because the value may be unhashable
        raise CheckpointError(
            f"{path}: {key}._target_ of its config is {node['_target_']!r:.100}, which is no class that a file may "
            f"name; nothing of it was run. A class of your own must stand in a list of {__name__}"
        )
    for name, value in node.items():
        if name.startswith("_") and name != "_target_" and not (name == "_partial_" and isinstance(value, bool)):
            raise CheckpointError(f"{path}: {key}.{name} of its config is {value!r:.100}, which no file may say")
        _refuse(path, f"{key}.{name}", value, allowed)


def _belongs_to_run(path: Path) -> bool:
    """Whether a checkpoint is where a run has it."""
    folder = path.absolute().parent
    return folder.name == "checkpoints" and (folder.parent / "config.yaml").is_file()


def _construct(node: Any, allowed: Mapping[str, type], of_run: bool, **given: int) -> Any:
    if isinstance(node, list):
        return [_construct(value, allowed, of_run) for value in node]
    if not isinstance(node, dict):
        return node
    arguments = {
        name: _named_files(value, of_run) if name in _FILES else _construct(value, allowed, of_run)
        for name, value in node.items()
        if not name.startswith("_") and name not in _ADDRESSES
    }
    if "_target_" not in node:
        return arguments
    cls = allowed[node["_target_"]]
    return partial(cls, **arguments) if node.get("_partial_") else cls(**(arguments | given))


def _named_files(value: Any, of_run: bool) -> Any:
    """Paths, marked if they must not be read."""
    if isinstance(value, list):
        return [_named_files(path, of_run) for path in value]
    if not isinstance(value, str) or (of_run and not any(map(Path(value).resolve().is_relative_to, _SYSTEM))):
        return value
    return Unread(value)
