"""CTranslate2 models of Transformers, for its server and its language bindings (https://opennmt.net/CTranslate2)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.export import ExportFormat, ExportInputs, ExportSummary, Parity, compare, random_sentences
from softsearch.files import new_folder
from softsearch.models import (
    ManyLanguagesDecoder,
    ManyLanguagesEncoder,
    OutputLayer,
    SelfAttention,
    Seq2Seq,
    TransformerDecoder,
    TransformerEncoder,
)
from softsearch.process import how_to_install
from softsearch.search import Sentences, StepFunction, score_pairs
from softsearch.text import EOS, SPECIALS, Tokenizers

_ACTIVATIONS: dict[type, str] = {nn.ReLU: "RELU", nn.GELU: "GELU", nn.SiLU: "SWISH"}
_POSITIONS = 2048  # longest sentence, as in models from CTranslate2's own converters
_LOG_PROBS = "log-probabilities"
_LENGTHS = (1, 5, 60)  # in tokens, of the sentences for the comparison with the model


class CTranslate2Format(ExportFormat):
    """The folder of a CTranslate2 model; CTranslate2 converts weights to other precisions when it loads them."""

    name: ClassVar[str] = "ctranslate2"

    def write(self, inputs: ExportInputs, out: Path) -> ExportSummary:
        """Writes the folder."""
        parity = export_ctranslate2(inputs.model, inputs.reference, inputs.tokenizers, out)
        return ExportSummary(backend="CTranslate2", parity=parity)


def export_ctranslate2(model: Seq2Seq, reference: StepFunction, tokenizers: Tokenizers, path: Path) -> Parity:
    """Writes the folder of a CTranslate2 model with SentencePiece models, if it computes the same numbers as the model.

    Args:
        model: a Transformer in evaluation mode.
        reference: the step function of the same model.
        tokenizers: source and target.
        path: a new or an empty folder.

    Raises:
        ConfigError: CTranslate2 is not installed or does not support the model, or the folder is not empty.
        BundleError: the written model computes other numbers; nothing was written.
    """
    spec = _spec(model)
    src, tgt = tokenizers
    if src.reverse or tgt.reverse:
        raise ConfigError("CTranslate2 reads and writes only from left to right; export this model with format=bundle")
    spec.register_source_vocabulary(src.names())
    spec.register_target_vocabulary(tgt.names())
    spec.config.add_source_eos = True
    if isinstance(model.decoder, ManyLanguagesDecoder):
        spec.config.decoder_start_token = SPECIALS[EOS]
    spec.validate()
    spec.optimize()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"out={path} exists and is not empty; choose a new folder or empty this one")
    with new_folder(path) as new:
        spec.save(str(new))
        for name, tokenizer in {"joint": src}.items() if src.model == tgt.model else {"src": src, "tgt": tgt}.items():
            (new / f"{name}.model").write_bytes(tokenizer.model)
        stacks: tuple[Any, ...] = (model.encoder, model.decoder)
        most = min(stack.positions.max_len or _POSITIONS for stack in stacks)
        parity = _compare(new, reference, tokenizers, most, model.decoder)
    return parity


def _spec(model: Seq2Seq) -> Any:
    """Returns the weights in the form of CTranslate2's converters."""
    encoder, decoder = cast(Any, model.encoder), cast(Any, model.decoder)
    _check_kinds(encoder, decoder)
    first_position = encoder.first_position if isinstance(encoder, ManyLanguagesEncoder) else 0
    encoder_layers, decoder_layers = list[Any](encoder.layers), list[Any](decoder.layers)
    output_layer = decoder.output_projection
    if isinstance(output_layer, OutputLayer):
        kind = type(output_layer).__name__
        raise ConfigError(f"CTranslate2 needs a linear output layer, but the model has {kind}; use format=bundle")
    heads = {layer.self_attention.num_heads for layer in (*encoder_layers, *decoder_layers)}
    residuals = [layer.self_attention_residual for layer in (*encoder_layers, *decoder_layers)]
    norms = {(residual.pre_norm, residual.norm.eps) for residual in residuals}
    if len(heads) > 1 or len(norms) > 1:
        raise ConfigError(
            "CTranslate2 needs the same num_heads, pre_norm and norm_eps in both stacks; use format=bundle"
        )
    try:
        from ctranslate2.specs import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec
        from ctranslate2.specs.common_spec import Activation
    except ImportError as error:
        raise ConfigError(f"format=ctranslate2 needs CTranslate2: {how_to_install('ctranslate2')}") from error
    ((pre_norm, norm_eps),), num_heads, sides = norms, heads.pop(), []
    aligned = {"alignment_layer": decoder.alignment_layer, "alignment_heads": heads_of_alignments(decoder)}
    for kind, stack, options in ((TransformerEncoderSpec, encoder, {}), (TransformerDecoderSpec, decoder, aligned)):
        rotary = stack.positions.kind == "rotary"
        side = kind(len(stack.layers), num_heads, pre_norm=pre_norm, rotary_dim=0 if rotary else None, **options)
        if not rotary:
            positions = first_position + torch.arange(stack.positions.max_len or _POSITIONS)
            dim = stack.embedding.embedding_dim
            side.position_encodings.encodings = _array(stack.positions.encodings(positions, dim))
        side.scale_embeddings = stack.positions.scale != 1
        side.activation = np.int8(Activation[_ACTIVATIONS[type(cast(Any, stack.layers[0]).feed_forward.activation)]])
        if pre_norm:
            _norm(side.layer_norm, cast(nn.LayerNorm, stack.final_norm))
        sides.append(side)
    spec = TransformerSpec(*sides)
    spec.config.layer_norm_epsilon = norm_eps
    spec.encoder.embeddings[0].weight = _array(encoder.embedding.weight)
    spec.decoder.embeddings.weight = _array(decoder.embedding.weight)
    _linear(spec.decoder.projection, output_layer)
    for target, layer in zip(spec.encoder.layer, encoder_layers, strict=True):
        _self_attention(target.self_attention, layer)
        _feed_forward(target.ffn, layer)
    for target, layer in zip(spec.decoder.layer, decoder_layers, strict=True):
        _self_attention(target.self_attention, layer)
        _feed_forward(target.ffn, layer)
        source, (query, key_value, output) = layer.cross_attention, target.attention.linear
        _norm(target.attention.layer_norm, layer.cross_attention_residual.norm)
        _linear(query, source.query_projection)
        _linear(key_value, source.key_value_projection)
        _linear(output, source.output_projection)
    return spec


def _check_kinds(encoder: Any, decoder: Any) -> None:
    """Refuses other architectures than Transformers, layers of other kinds, and languages behind the source."""
    kinds = (type(encoder), type(decoder))
    if kinds not in ((TransformerEncoder, TransformerDecoder), (ManyLanguagesEncoder, ManyLanguagesDecoder)):
        raise ConfigError("CTranslate2 supports only Transformers, not this architecture; use format=bundle")
    if isinstance(encoder, ManyLanguagesEncoder) and encoder.source_language == "last":
        raise ConfigError(
            "this NLLB-200 reads the source's language behind the source (legacy_behaviour), which CTranslate2's "
            "models do not in this export; use format=bundle"
        )
    if not all(isinstance(layer.self_attention, SelfAttention) for layer in decoder.layers):
        raise ConfigError("CTranslate2 does not support the SSRU, expected self_attention=attention; use format=bundle")
    if any(layer.convolutions is not None for layer in encoder.layers):
        raise ConfigError("CTranslate2 has no convolutions, expected convolution_widths=null; use format=bundle")


def heads_of_alignments(decoder: TransformerDecoder) -> int:
    """Returns the number of first heads that CTranslate2 averages for alignments; 0 for all."""
    if decoder.alignment_head:
        raise ConfigError(
            f"CTranslate2 takes alignments from the first head or from all heads, but this model from head "
            f"{decoder.alignment_head} (model.decoder.alignment_head); use format=bundle"
        )
    return 0 if decoder.alignment_head is None else 1


def _self_attention(target: Any, layer: Any) -> None:
    attention = layer.self_attention
    _norm(target.layer_norm, layer.self_attention_residual.norm)
    _linear(target.linear[0], attention.query_projection, attention.key_value_projection)
    _linear(target.linear[1], attention.output_projection)


def _feed_forward(target: Any, layer: Any) -> None:
    _norm(target.layer_norm, layer.feed_forward_residual.norm)
    _linear(target.linear_0, layer.feed_forward.hidden_projection)
    _linear(target.linear_1, layer.feed_forward.output_projection)


def _linear(target: Any, *layers: nn.Linear) -> None:
    """Stacks the weights of one or several layers with the same input."""
    target.weight = _array(torch.cat([layer.weight for layer in layers]) if len(layers) > 1 else layers[0].weight)
    target.bias = _array(torch.cat([layer.bias for layer in layers]))


def _norm(target: Any, norm: nn.LayerNorm) -> None:
    target.gamma, target.beta = _array(norm.weight), _array(norm.bias)


def _array(weight: Tensor) -> NDArray[np.float32]:
    return weight.detach().float().cpu().numpy()


def _compare(folder: Path, reference: StepFunction, tokenizers: Tokenizers, most: int, decoder: object) -> Parity:
    """Compares the log probabilities of random translations with at most ``most`` tokens, EOS included.

    For a model of many languages CTranslate2 gets no tag of the target; its translations begin with the language.
    """
    import ctranslate2

    many = decoder.num_languages if isinstance(decoder, ManyLanguagesDecoder) else 0
    sizes = [tokenizer.vocab_size - 3 * many for tokenizer in tokenizers]
    src, tgt = (random_sentences(_LENGTHS, size, most, seed=seed) for seed, size in enumerate(sizes))
    if many:
        languages = [number % many for number in range(len(src))]
        src = [[sizes[0] + many + n, sizes[0] + 3 * many - 1 - n, *ids] for n, ids in zip(languages, src, strict=True)]
        tgt = [[sizes[1] + n, *ids] for n, ids in zip(languages, tgt, strict=True)]
    skipped = 1 if many else 0
    translator = ctranslate2.Translator(str(folder), device="cpu", compute_type="float32")

    def own(src: Sentences) -> Iterator[dict[str, NDArray[Any]]]:
        read = [ids[skipped:] for ids in src]
        texts = [[t.pieces(ids) for ids in side] for t, side in zip(tokenizers, (read, tgt), strict=True)]
        yield from ({_LOG_PROBS: np.array(score.log_probs[skipped:])} for score in translator.score_batch(*texts))

    def expected(src: Sentences) -> Iterator[dict[str, NDArray[Any]]]:
        scores = score_pairs(reference, src, tgt, batch_tokens=4096)
        yield from ({_LOG_PROBS: np.array(score.token_log_probs[skipped:])} for score in scores)

    return compare(own, expected, src, names=("CTranslate2's log probabilities", "the model's"))
