"""The pointer-generator: a decoder that also copies source pieces (See, Liu & Manning 2017, arXiv:1704.04368)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.errors import ConfigError
from softsearch.models.attentional import AttentionalDecoder, StepInputs
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import DecoderState, EncoderDescription, EncoderOutput, Memory
from softsearch.models.layers import Projections, xavier
from softsearch.models.output_layers import OutputLayer, accumulation_dtype
from softsearch.text.vocabulary import PAD


class CopyMixture(OutputLayer):
    """p(w) = p_gen P_vocab(w) + (1 - p_gen) sum_{i: x_i = w} a_i (equation 9), with P_vocab by another output layer.

    A row of features holds everything its word depends on: the ``dim`` features of P_vocab, the logit of p_gen,
    the alignments a_i and the source's ids x_i, which float32 holds exactly.
    """

    def __init__(self, vocabulary_projection: nn.Linear | OutputLayer, dim: int) -> None:
        super().__init__()
        self.vocabulary_projection, self.dim = vocabulary_projection, dim
        self.out_features = vocabulary_projection.out_features

    @staticmethod
    def join(t: Tensor, gate: Tensor, alignments: Tensor, src_tokens: Tensor) -> Tensor:
        """Joins the arguments of ``mix`` into rows of features."""
        return torch.cat((t, gate, alignments, src_tokens.to(accumulation_dtype(t))), dim=-1)

    def forward(self, features: Tensor) -> Tensor:
        src_len = (features.shape[-1] - self.dim - 1) // 2
        t, gate, alignments, src_tokens = features.split((self.dim, 1, src_len, src_len), dim=-1)
        # Not next(self.parameters()), which FSDP removes.
        dtype = next(module.weight.dtype for module in self.modules() if isinstance(module, nn.Linear))
        return self.mix(t.to(dtype), gate, alignments, src_tokens.long())

    def mix(self, t: Tensor, gate: Tensor, alignments: Tensor, src_tokens: Tensor) -> Tensor:
        """The log probabilities ``[..., vocab]``, in at least float32.

        Args:
            t: ``[..., dim]``, the features of P_vocab.
            gate: ``[..., 1]``, the logit of p_gen.
            alignments: ``[..., src_len]``, 0 at PAD.
            src_tokens: ``[..., src_len]`` ids.
        """
        dtype = accumulation_dtype(t)
        gate, alignments = gate.to(dtype), alignments.to(dtype)
        generated = self.vocabulary_projection(t).log_softmax(-1, dtype=dtype) - functional.softplus(-gate)
        # Only the source's words get more than is generated: log(e^a + e^b) = a + softplus(b - a), [..., src_len]
        copied = torch.zeros_like(generated).scatter_add(-1, src_tokens, alignments).gather(-1, src_tokens)
        safe = copied.where(copied > torch.finfo(dtype).tiny, 1.0)  # its logarithm and its gradient are finite
        more = functional.softplus(safe.log() - functional.softplus(gate) - generated.gather(-1, src_tokens))
        share = (alignments / safe).detach()  # each position's share of its word; 0 where nothing is copied
        return generated.scatter_add(-1, src_tokens, more * share)


class PointerGeneratorDecoder(AttentionalDecoder):
    """An ``AttentionalDecoder`` that copies pieces of the source (section 2.2).

    p_gen = sigmoid(w_h' c_j + w_s' s_j + w_x' E y_{j-1} + b) (equation 8), and ``CopyMixture`` over P_vocab, the
    decoder's softmax. Source and target share one vocabulary of pieces, so that every source piece has an id and no
    extended vocabulary is needed. Copying the source's EOS ends the translation. The paper's coverage is left out.

    Raises:
        ConfigError: the vocabularies differ in size, or the encoder's positions are not the source's pieces.
    """

    copies_source = True

    def complete(self, embeddings: Embeddings, encoder: EncoderDescription) -> None:
        sizes = embeddings.src.num_embeddings, embeddings.tgt.num_embeddings
        if sizes[0] != sizes[1]:
            raise ConfigError(
                "model.decoder copies source pieces and needs one joint vocabulary, found {} source and {} target "
                "pieces; set tokenizer.joint=true, or another model.decoder".format(*sizes)
            )
        if encoder.has_own_mask:
            found = "reads feature vectors" if encoder.feature_dim else f"has {encoder.tokens_per_position} of them"
            raise ConfigError(
                "model.decoder copies the source piece of each position of the encoder, but a position of "
                f"model.encoder {found}; change one of them"
            )
        hidden_dim, memory_dim = self.cell.hidden_dim, encoder.output_dim
        self.gate_projections = Projections(1, state=hidden_dim, embedding=embeddings.dim, context=memory_dim)
        self.output_projection: CopyMixture = CopyMixture(self.output_projection, self.readout.output_dim)
        for layer in self.gate_projections.layers():
            xavier(layer)

    def context_layers(self) -> list[str | None]:
        return [*super().context_layers(), "gate_projections.context"]

    def project(self, encoded: EncoderOutput) -> tuple[Tensor, ...]:
        """The projections of the source, followed by its token ids."""
        assert encoded.src_tokens is not None
        # An encoder's graph cannot return its input as it is.
        return (*super().project(encoded), encoded.src_tokens.where(encoded.mask, PAD))

    def features_and_alignments(self, tgt_tokens: Tensor, state: DecoderState) -> tuple[Tensor, Tensor]:
        """The input of ``CopyMixture`` for every position, and the alignments."""
        embedded, read = self.read_all(tgt_tokens, state)
        src_tokens = state.memory.projected[-1][:, None].expand_as(read.alignments)
        parts = (*self._readout_and_gate(embedded, read), read.alignments, src_tokens)
        return self.output_projection.join(*parts), read.alignments

    def logits(self, embedded: Tensor, read: StepInputs, memory: Memory) -> Tensor:
        """Logits without passing ids through features, where they would be too large for a graph in float16."""
        src_tokens = memory.projected[-1]
        by_beam = read.alignments.unflatten(0, (src_tokens.shape[0], -1))  # [sentences, beams, src_len]
        rows = src_tokens[:, None].expand_as(by_beam).flatten(0, 1)
        return self.output_projection.mix(*self._readout_and_gate(embedded, read), read.alignments, rows)

    def _readout_and_gate(self, embedded: Tensor, read: StepInputs) -> tuple[Tensor, Tensor]:
        """t_j, and the logit of p_gen."""
        gate = self.gate_projections(embedding=embedded, state=read.state, context=read.context)
        return self.dropout(self.readout(embedded, read.state, read.context)), gate
