"""Likelihood of the whole pair for decoder-only models: source and target are one sequence of a language model."""

from torch import Tensor

from softsearch.data.dataset import Batch
from softsearch.errors import ConfigError
from softsearch.models.decoder_only import DecoderOnly, SourceEmbeddings
from softsearch.models.interface import Seq2Seq
from softsearch.models.loss import CrossEntropy, Loss
from softsearch.ranges import NotNegative
from softsearch.text.vocabulary import PAD
from softsearch.training.objectives.teacher_forcing import loss_of_targets


def joint_likelihood(
    model: Seq2Seq, loss: CrossEntropy, batch: Batch, step: int, *, source_weight: NotNegative = 1.0
) -> tuple[Loss, Tensor]:
    """A ``TrainingMethod``: -log p(y | x) - ``source_weight`` log p(x), where p(y | x) translates.

    With a weight of 1 this is the language model over the pair of Liu et al. 2018 (arXiv:1801.10198, section 4.2.3).
    p(x) is the product over the words x_2 .. x_S, EOS included, each given the words before it.

    Raises:
        ConfigError: the model does not read the source with a language model.
    """
    del step
    if not isinstance(model.decoder, DecoderOnly) or not isinstance(model.encoder, SourceEmbeddings):
        raise ConfigError(
            "method=joint_likelihood needs a model that also predicts the source, but found "
            f"{type(model.encoder).__name__} and {type(model.decoder).__name__}; set model=decoder_only or "
            "model=decoder_only_rnn, or method=teacher_forcing"
        )
    state = model.encode(batch.src_tokens)
    features = model.decoder.features(batch.tgt_tokens[:, :-1], state)
    x, words = state.memory.states[:, :-1], batch.src_tokens[:, 1:]
    source = loss(x[words != PAD], words[words != PAD], model.decoder.output_projection)
    target, tokens = loss_of_targets(model, loss, batch, features)
    return Loss(target.smoothed + source_weight * source.smoothed, target.nll), tokens
