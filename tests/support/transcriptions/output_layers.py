"""Output layers other than W x + b."""

import math
from collections.abc import Sequence

import numpy as np

from tests.support.transcriptions.equations import Array, Options, Weights, dropped, sigmoid, softmax
from tests.support.transcriptions.recurrent import Encoded, conditional_gru_steps


class FactoredOutput(Weights):
    """A decoder's weights whose output layer is factored by classes: what it gives are log probabilities."""

    options: Options  # of the layer

    def affine(self, name: str, x: Array) -> Array:
        if name != "output_projection":
            return super().affine(name, x)
        kind = {"ClassFactored": class_factored, "HierarchicalSoftmax": hierarchical_softmax}
        return kind[self.options["_target_"].rpartition(".")[2]](self.at(name), self.options, x)


def class_factored(w: Weights, options: Options, t: Array) -> Array:
    """p(w | t) = p(c(w) | t) p(w | c(w), t) (Goodman 2001); c(w) by ranges of ids, all of one size but the last."""
    vocab = len(w["word_projection.weight"])
    size = math.ceil(vocab / (options["num_classes"] or math.floor(math.sqrt(vocab))))
    classes = [range(begin, min(begin + size, vocab)) for begin in range(0, vocab, size)]
    p_class = softmax(w.affine("class_projection", t))
    assert len(p_class) == len(classes)
    logits = w.affine("word_projection", t)
    return np.log(np.concatenate([p_class[c] * softmax(logits[list(words)]) for c, words in enumerate(classes)]))


def hierarchical_softmax(w: Weights, options: Options, t: Array) -> Array:
    """Morin & Bengio 2005, section 3: P(v) = prod_j P(b_j(v) | b_1(v), ..., b_{j-1}(v)), each a logistic regression.

    The bits of word v: those of the binary number V + v behind its leading 1, 0 is left.
    """
    del options
    vocab, log_probs = len(w["node_projection.weight"]) + 1, []
    left = sigmoid(w.affine("node_projection", t))  # at each inner node, from the root on level by level
    for word in range(vocab):
        node, p = 1, 1.0
        for bit in f"{vocab + word:b}"[1:]:
            p *= left[node - 1] if bit == "0" else 1 - left[node - 1]
            node = 2 * node + int(bit)
        log_probs.append(math.log(p))
    return np.array(log_probs)


def pointer_generator(w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]) -> list[Array]:
    """See et al. 2017, section 2.2, over the decoder of Sennrich et al. 2017, section 2."""
    log_probs = []
    for t, s, y, c, a in conditional_gru_steps(w, options, encoded, ids):
        w_h, w_s, w_x = (w.at("gate_projections")[f"{of}.weight"][0] for of in ("context", "state", "embedding"))
        p_gen = sigmoid(w_h @ c + w_s @ s + w_x @ y + w["gate_projections.state.bias"][0])  # equation 8
        p = p_gen * softmax(w.at("output_projection").affine("vocabulary_projection", dropped(options, t)))
        for a_i, x_i in zip(a, encoded.src, strict=True):  # equation 9
            p[x_i] += (1 - p_gen) * a_i
        log_probs.append(np.log(p))
    return log_probs
