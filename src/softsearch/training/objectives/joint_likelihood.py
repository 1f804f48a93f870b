"""Likelihood of the whole pair for decoder-only models: source and target are one sequence of a language model."""

from torch import Tensor

from softsearch.errors import ConfigError
from softsearch.models.decoder_only import DecoderOnly, SourceEmbeddings
from softsearch.models.loss import Loss
from softsearch.ranges import NotNegative
from softsearch.text.vocabulary import PAD
from softsearch.training.interface import TrainingStep


def joint_likelihood(step: TrainingStep, *, source_weight: NotNegative = 1.0) -> tuple[Loss, Tensor]:
    """A ``TrainingMethod``: -log p(y | x) - ``source_weight`` log p(x), where p(y | x) translates.

    With a weight of 1 this is the language model over the pair of Liu et al. 2018 (arXiv:1801.10198, section 4.2.3).
    p(x) is the product over the words x_2 .. x_S, EOS included, each given the words before it.

    Raises:
        ConfigError: the model does not read the source with a language model.
    """
    model, batch = step.model, step.batch
    if not isinstance(model.decoder, DecoderOnly) or not isinstance(model.encoder, SourceEmbeddings):
        raise ConfigError(
            "method=joint_likelihood needs a model that also predicts the source, but found "
            f"{type(model.encoder).__name__} and {type(model.decoder).__name__}; set model=decoder_only or "
            "model=decoder_only_rnn, or method=teacher_forcing"
        )
    state = model.encode(batch.src_tokens)
    features = model.decoder.features(batch.tgt_tokens[:, :-1], state)
    x, words = state.memory.states[:, :-1], batch.src_tokens[:, 1:]
    source = step.loss(x[words != PAD], words[words != PAD], model.decoder.output_projection)
    target, tokens = step.loss_of(features)
    return Loss(target.smoothed + source_weight * source.smoothed, target.nll), tokens
