"""Several sources of one target (Zoph & Knight 2016), each sentence by itself: from token ids to logits."""

from collections.abc import Sequence

import numpy as np

from softsearch.text.vocabulary import EOS
from tests.support.transcriptions.captions import annotations
from tests.support.transcriptions.equations import Array, Options, State, Weights
from tests.support.transcriptions.recurrent import Encoded, Ends, attend_after_the_top_layer, encode

TAG = 4  # "<and>"


def split_at_tags(ids: Sequence[int], count: int) -> list[list[int]]:
    """The tokens of each source: up to a tag, or to the end of the line; EOS alone of those that the line lacks."""
    *words, eos = ids
    assert eos == EOS
    sources: list[list[int]] = [[]]
    for token in words:
        sources[-1].append(token)
        if token == TAG and len(sources) < count:
            sources.append([])
    sources[-1].append(EOS)
    return sources + [[EOS]] * (count - len(sources))


def encode_sources(w: Weights, options: Options, ids: Sequence[int]) -> list[Encoded]:
    """Section 3: an encoder for each source."""
    w["embedding.weight"]  # the same as that of each encoder
    sources = split_at_tags(ids, options["num_sources"])
    vectors = [] if options["feature_dim"] is None else [annotations(w, options, sources[0])]
    texts = [
        encode(w.at(f"encoders.{i}"), options["encoder"], source)
        for i, source in enumerate(sources)
        if i >= len(vectors)
    ]
    ends = [
        Ends(combine(w, f"state_projections.{layer}", [text.ends[layer].joined() for text in texts]), None)
        for layer in range(len(texts[0].ends))
    ]
    return [source._replace(ends=ends) for source in (*vectors, *texts)]


def combine(w: Weights, name: str, states: Sequence[State]) -> State:
    """Section 3.1, equations 5 and 6: h = tanh(W_c [h_1; h_2]), c = c_1 + c_2."""
    h, *c = zip(*states, strict=True)
    return (np.tanh(w.product(name, np.concatenate(h))), *(np.sum(cells, axis=0) for cells in c))


def decode(w: Weights, options: Options, encoded: Sequence[Encoded], ids: Sequence[int]) -> list[Array]:
    """Section 3.4: a context from each source; else Luong et al. 2015."""
    attentions = [w.at(f"attention.attentions.{i}") for i in range(len(encoded))]
    return attend_after_the_top_layer(w, options, list(zip(attentions, encoded, strict=True)), ids)
