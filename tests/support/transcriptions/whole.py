"""A whole model by its YAML: which transcription encodes, and which decodes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from omegaconf import DictConfig

from tests.support.transcriptions import (
    bi_scale,
    captions,
    characters,
    decoder_only,
    language_models,
    ngrams,
    output_layers,
    recurrent,
    sources,
    transformer,
)
from tests.support.transcriptions.equations import Array, Options, Weights
from tests.support.transcriptions.recurrent import Encoded

Encode = Callable[[Weights, Options, Sequence[int]], Any]  # one Encoded, or one of each source
Decode = Callable[[Weights, Options, Any, Sequence[int]], list[Array]]

ENCODERS: dict[str, Encode] = {
    "RecurrentEncoder": recurrent.encode,
    "CharacterEncoder": characters.encode,
    "ConvolutionalEncoder": recurrent.convolve,
    "TransformerEncoder": transformer.encode,
    "NgramEncoder": ngrams.encode,
    "SourceEmbeddings": decoder_only.read_source,
    "FeatureEncoder": captions.annotations,
    "MultiSourceEncoder": sources.encode_sources,
    "NoSource": lambda *_: Encoded([], []),
}
CELLS = {"ElmanCell": "rnn", "LSTMCell": "lstm", "GRUCell": "gru", "InputForgetCell": "input_forget"}
DECODERS: dict[str, Decode] = {
    "RecurrentDecoder": recurrent.encoder_decoder,
    "AttentionalDecoder": recurrent.attentional,
    "RNNencdecDecoder": recurrent.rnnencdec,
    "BiScaleDecoder": bi_scale.decode,
    "LuongDecoder": recurrent.luong,
    "PointerGeneratorDecoder": output_layers.pointer_generator,
    "MultiSourceDecoder": sources.decode,
    "RCTMDecoder": recurrent.summary,
    "RCTM2Decoder": ngrams.unfolded,
    "FeedForwardDecoder": language_models.feed_forward,
    "LogBilinearDecoder": language_models.log_bilinear,
    "NGramDecoder": language_models.ngram,
    "TransformerDecoder": transformer.decode,
    "DecoderOnlyTransformer": decoder_only.transformer,
    "DecoderOnlyRNN": decoder_only.rnn,
}


def logits(
    model: DictConfig, weights: Mapping[str, Array], src: Sequence[int], tgt: Sequence[int]
) -> tuple[Array, set[str]]:
    """Logits ``[len(tgt), vocab]`` after each token of ``tgt``, and the names of the parameters that they need.

    Args:
        model: the node ``model`` of a config.
        weights: the model's parameters by name.
        src: token ids of one sentence, EOS included.
        tgt: what the decoder reads, BOS first.
    """
    w = Weights(weights)
    if "encoder" in model:
        encode, encoder = ENCODERS[_class(model.encoder)], model.encoder
        decode, decoder = DECODERS[_class(model.decoder)], model.decoder
    else:  # an encoder-decoder of one kind of cell
        encode, decode, encoder, decoder = recurrent.encode, recurrent.encoder_decoder, model, model
    encoder, decoder = beside_each_other(encoder), beside_each_other(decoder)
    encoded = encode(w.at("encoder"), encoder, src)
    if isinstance(encoded, Encoded):  # not several sources
        encoded = encoded._replace(src=src)
    of_decoder = w.at("decoder")
    if "output_layer" in model.embeddings:
        of_decoder = output_layers.FactoredOutput(weights, of_decoder.prefix, w.used)
        of_decoder.options = model.embeddings.output_layer
    return np.array(decode(of_decoder, decoder, encoded, tgt)), w.used


def beside_each_other(node: DictConfig) -> Options:
    """Options of an encoder or a decoder, with those of its cell beside them, and the cell's name; parts by class."""
    options: dict[str, Any] = {}
    for name, value in node.items():
        if name == "cell":
            options |= {
                name: CELLS.get(_class(value)),
                **{key: value[key] for key in value if not str(key).startswith("_")},
            }
        elif name in ("attention", "initial_state", "readout", "context_cell") and value is not None:
            options[name] = {"class": _class(value), **value}
        else:
            options[str(name)] = beside_each_other(value) if isinstance(value, DictConfig) else value
    return options


def _class(node: DictConfig) -> str:
    return str(node["_target_"]).rpartition(".")[2]
