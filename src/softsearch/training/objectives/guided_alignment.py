"""Guided alignment (Chen et al. 2016, arXiv:1607.01628; for the Transformer Garg et al. 2019, arXiv:1909.02074)."""

from torch import Tensor

from softsearch.data.corpora.base import ParallelSource, given_links
from softsearch.errors import ConfigError
from softsearch.models.interface import Decoder, over_tokens
from softsearch.models.loss import Loss
from softsearch.models.multi_head import MultiHeadDecoder
from softsearch.models.seq2seq import Seq2Seq
from softsearch.ranges import Count, NotNegative
from softsearch.text.vocabulary import PAD
from softsearch.training.interface import TrainingPart, TrainingStep

_LEAST = 1e-9  # lower bound of weights in the logarithm


class GuidedAlignment(TrainingPart):
    """A ``TrainingMethod``: teacher forcing that also trains attention to agree with word alignments.

    It adds ``weight`` times the cross-entropy -sum_ij a_ij log alpha_ij to the loss, where a_i distributes target token
    i over the source tokens linked to it (Chen et al., section 3; Garg et al., equation 5). Tokens without a link, such
    as EOS, add nothing. alpha are the alignments that the decoder's steps return: the attention of a recurrent
    decoder, or one head of a Transformer.

    Args:
        weight: weight of the cross-entropy; 0.05 in Garg et al.
        layer: layer of a Transformer's decoder, from 0, or negative from the end; the configs of Transformers pass it
            to the decoder, which then returns these alignments. Garg et al. use the penultimate layer.
        head: head in that layer, from 0.
    """

    def __init__(self, *, weight: NotNegative = 0.05, layer: int = -2, head: Count = 0) -> None:
        self.weight, self.layer, self.head = weight, layer, head

    def check(self, model: Seq2Seq, source: ParallelSource) -> None:
        """Checks that the model's attention can be trained, and that the data has links.

        Raises:
            ConfigError: the model has no attention or returns that of another head, or the data has no links.
            CorpusError: a file of links does not exist.
        """
        if given_links(source.links) is None:
            raise ConfigError(
                "method=guided_alignment needs links between the words of the training text, but data.links names "
                "none; set data.links=auto to compute them, or data.links.train=FILE, with a line such as '0-0 1-2' "
                "for each pair"
            )
        decoder = model.decoder
        if type(decoder).features_and_alignments is Decoder.features_and_alignments or not decoder.has_attention:
            what = "without features_and_alignments" if decoder.has_attention else "which attends to no source"
            raise ConfigError(
                f"method=guided_alignment trains attention, but model.decoder is a {type(decoder).__name__}, {what}; "
                "set model=transformer_tiny, model=nematus or another model with attention, or method=teacher_forcing"
            )
        if not isinstance(decoder, MultiHeadDecoder):
            return
        found, layers = (decoder.alignment_layer, decoder.alignment_head), len(decoder.source_attention())
        if found != (self.layer % layers, self.head):
            raise ConfigError(
                f"method.layer and method.head are {self.layer} and {self.head}, but model.decoder returns the "
                f"alignments of layer {found[0]} and {'all heads' if found[1] is None else f'head {found[1]}'}; set "
                f"model.decoder.alignment_layer={self.layer} model.decoder.alignment_head={self.head}"
            )

    def __call__(self, step: TrainingStep) -> tuple[Loss, Tensor]:
        """Computes the loss of a batch."""
        model, batch = step.model, step.batch
        assert batch.links is not None
        state = model.encode(batch.src_tokens, batch.src_features)
        features, attended = model.decoder.features_and_alignments(batch.tgt_tokens[:, :-1], state)
        summed, tokens = step.loss_of(features)
        per_position = model.encoder.description.tokens_per_position
        alignments = over_tokens(attended.flatten(0, 1), batch.src_tokens != PAD, per_position)  # [batch * tgt_len, ..]
        logs = alignments.to(summed.smoothed.dtype).clamp(min=_LEAST).log().view(batch.links.shape)
        return Loss(summed.smoothed - self.weight * (batch.links * logs).sum(), summed.nll), tokens
