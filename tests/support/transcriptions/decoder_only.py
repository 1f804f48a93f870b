"""Decoder-only translation: one causal stack over one sequence, x_1 .. x_S EOS BOS y_1 .., each pair by itself."""

from collections.abc import Sequence
from functools import partial

from tests.support.transcriptions.equations import Array, Options, Weights, dropped
from tests.support.transcriptions.recurrent import Encoded, run
from tests.support.transcriptions.transformer import feed_forward, look_back, normed, positioned, residual


def read_source(w: Weights, options: Options, ids: Sequence[int]) -> Encoded:
    """The first part of the sequence."""
    del options
    return Encoded([w["embedding.weight"][token] for token in ids], [])


def transformer(w: Weights, options: Options, source: Encoded, ids: Sequence[int]) -> list[Array]:
    """Vaswani et al. 2017, section 3, without an encoder and without attention to one; the logits of the target."""
    return transformer_sequence(w, options, source, ids)[len(source.annotations) :]


def transformer_sequence(w: Weights, options: Options, source: Encoded, ids: Sequence[int]) -> list[Array]:
    """Logits after each token of the sequence."""
    x = positioned(w, options, [*source.annotations, *(w["embedding.weight"][token] for token in ids)])
    x = [dropped(options, row) for row in x]
    for layer in range(options["num_layers"]):
        own = w.at(f"layers.{layer}")
        x = residual(own, "self_attention", options, x, partial(look_back, own.at("self_attention"), options))
        x = residual(own, "feed_forward", options, x, partial(feed_forward, own, options))
    if options["pre_norm"]:
        x = [normed(w.at("final_norm"), row) for row in x]
    return [w.affine("output_projection", row) for row in x]


def rnn(w: Weights, options: Options, source: Encoded, ids: Sequence[int]) -> list[Array]:
    """Sutskever et al. 2014, section 2, with one set of weights; the logits of the target."""
    return rnn_sequence(w, options, source, ids)[len(source.annotations) :]


def rnn_sequence(w: Weights, options: Options, source: Encoded, ids: Sequence[int]) -> list[Array]:
    """Logits after each token of the sequence."""
    x = [*source.annotations, *(w["embedding.weight"][token] for token in ids)]
    for layer in range(options.get("num_layers", 1)):
        x, _ = run(w.at(f"layers.{layer}.forward_cell"), options, [dropped(options, h) for h in x])
    return [w.affine("output_projection", dropped(options, h)) for h in x]
