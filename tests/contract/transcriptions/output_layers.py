"""Output layers other than W x + b."""

import math

import numpy as np

from tests.contract.transcriptions.equations import Array, Options, Weights, softmax


class FactoredOutput(Weights):
    """A decoder's weights whose output layer is factored by classes: what it gives are log probabilities."""

    options: Options  # of the layer

    def affine(self, name: str, x: Array) -> Array:
        if name != "output_projection":
            return super().affine(name, x)
        return class_factored(self.at(name), self.options, x)


def class_factored(w: Weights, options: Options, t: Array) -> Array:
    """p(w | t) = p(c(w) | t) p(w | c(w), t) (Goodman 2001); c(w) by ranges of ids, all of one size but the last."""
    vocab = len(w["word_projection.weight"])
    size = math.ceil(vocab / (options["num_classes"] or math.floor(math.sqrt(vocab))))
    classes = [range(begin, min(begin + size, vocab)) for begin in range(0, vocab, size)]
    p_class = softmax(w.affine("class_projection", t))
    assert len(p_class) == len(classes)
    logits = w.affine("word_projection", t)
    return np.log(np.concatenate([p_class[c] * softmax(logits[list(words)]) for c, words in enumerate(classes)]))
