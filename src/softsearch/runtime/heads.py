"""Attention of each head of each layer: the step of a Transformer, with their weights among its outputs."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError, ConfigError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.graph_check import check_graph, heads_by_layer, with_weights
from softsearch.runtime.manifest import DATA_SUFFIX, DECODER_STEP

if TYPE_CHECKING:
    from softsearch.runtime.graph_session import Graph

Heads = list[tuple[int, int]]  # layers and heads, from 0


class HeadSession(NamedTuple):
    """A session of such a step that returns the weights of some heads, averaged, as alignments."""

    session: Any
    heads: Heads

    def run(self, names: list[str], feeds: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Runs the session, one of whose outputs are the alignments."""
        layers = sorted({layer for layer, _ in self.heads})
        wanted = [name for name in names if name != "alignments"]
        found = self.session.run([*wanted, *(f"weights.{layer}" for layer in layers)], feeds)
        by_layer = dict(zip(layers, found[len(wanted) :], strict=True))  # [sentences, heads, beams, src_len]
        chosen = np.mean([by_layer[layer][:, head] for layer, head in self.heads], axis=0, dtype=np.float32)
        at = names.index("alignments")
        return [*found[:at], chosen, *found[at : len(wanted)]]


def heads_of(bundle: Bundle) -> dict[str, Heads]:
    """Returns the heads whose attention a bundle can return, by name; empty unless it is one Transformer.

    Raises:
        BundleError: the decoder's step is not a valid graph.
    """
    if bundle.manifest.is_single:
        return {}
    check_graph(bundle.files[DECODER_STEP], len(bundle.files.get(f"{DECODER_STEP}{DATA_SUFFIX}", b"")))
    layers = heads_by_layer(bundle.files[DECODER_STEP], _source_memory(bundle))
    every = [(layer, head) for layer, heads in enumerate(layers) for head in range(heads)]
    named = {f"layer {layer}, head {head}": [(layer, head)] for layer, head in every}
    return {"mean of all layers and heads": every, **named} if every else {}


def check_head(name: str, heads: Collection[str], origin: str) -> None:
    """Checks that a model has a head of this name; ``origin`` names the model.

    Raises:
        ConfigError: the model has no such head.
    """
    if name not in heads:
        some = f"one of: {'; '.join(heads)}" if heads else "none: only the bundle of one Transformer has heads"
        raise ConfigError(f"head is {name!r:.60}, but {origin} has {some}; change head or leave it out")


def reopen(path: Path, sha256: str) -> Bundle:
    """Reopens a bundle, which must still have this hash.

    Raises:
        BundleError: another bundle is there.
    """
    bundle = Bundle.open(path)
    if bundle.sha256 != sha256:
        raise BundleError(f"bundle {path} has been replaced since it was opened; open it again")
    return bundle


def step_with_weights(bundle: Bundle) -> "Graph":
    """The step of a bundle, with the weights ``weights.i`` of each layer i among its outputs."""
    from softsearch.runtime.graph_session import open_graph  # listing heads needs no ONNX Runtime

    graph = open_graph(bundle.files, DECODER_STEP)
    return graph._replace(model=with_weights(graph.model, _source_memory(bundle)))


def _source_memory(bundle: Bundle) -> list[str]:
    """The outputs of the encoder that have a place for each token of the source."""
    encoder = bundle.manifest.graphs["encoder"]
    shapes = {port["name"]: port.get("shape") for side in ("inputs", "outputs") for port in encoder[side]}
    second = {name: shape[1] for name, shape in shapes.items() if isinstance(shape, list) and len(shape) > 1}
    return [name for name in second if name.startswith("memory.") and second[name] == second.get("src_tokens")]
