"""Whole recurrent models, each sentence by itself: from token ids to logits."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tests.support.transcriptions.cells import cell, drop_input, drop_state, zeros
from tests.support.transcriptions.equations import (
    Array,
    Options,
    State,
    Weights,
    additive_attention,
    dropped,
    elman,
    lstm,
    maxout,
    norm,
    sigmoid,
    softmax,
)


class Ends(NamedTuple):
    """The states that a layer ends with: the forward one at the last word, the backward one at the first."""

    forward: State
    backward: State | None

    def joined(self) -> State:
        """[->h; <-h], and the same of c."""
        if self.backward is None:
            return self.forward
        return tuple(np.concatenate(pair) for pair in zip(self.forward, self.backward, strict=True))


class Encoded(NamedTuple):
    """What a decoder gets of a sentence."""

    annotations: list[Array]
    ends: list[Ends]  # by layer
    src: Sequence[int] = ()  # ids


def encode(w: Weights, options: Options, ids: Sequence[int]) -> Encoded:
    """Layers of cells, each over the states of the one below (Bahdanau et al. 2015, section 3.2, has one)."""
    x, ends = [dropped(options, w["embedding.weight"][token]) for token in ids], []
    for layer in range(options.get("num_layers", 1)):
        layer_weights = w.at(f"layers.{layer}")
        forward, last = run(layer_weights.at("forward_cell"), options, x)
        if options.get("bidirectional", True):
            backward, first = run(layer_weights.at("backward_cell"), options, x[::-1])
            x = [np.concatenate(pair) for pair in zip(forward, backward[::-1], strict=True)]
            ends.append(Ends(last, first))
        else:
            x = forward
            ends.append(Ends(last, None))
        x = [dropped(options, h) for h in x]  # Zaremba et al. 2014, figure 2: what goes up, not what goes on
    return Encoded(x, ends)


def run(w: Weights, options: Options, words: Sequence[Array]) -> tuple[list[Array], State]:
    """h at each word, and the last state."""
    state, outputs = zeros(w, options), []
    for word in words:
        state = cell(w, options, w.affine("input_projection", drop_input(options, state, word)), state)
        outputs.append(state[0])
    return outputs, state


def convolve(w: Weights, options: Options, ids: Sequence[int]) -> Encoded:
    """The CSM of Kalchbrenner & Blunsom 2013, section 3: csm(e)."""
    matrix = np.array(
        [dropped(options, w["embedding.weight"][token]) for token in ids]
    ).T  # E_1, a column for each word
    width, begin = 2, 0
    while matrix.shape[1] >= width:
        matrix = np.tanh(convolution(w["kernels"][:, begin : begin + width], matrix))  # K^width
        width, begin = width + 1, begin + width
    columns = matrix.shape[1]
    if columns > 1:  # L^columns
        begin = sum(range(2, columns))
        matrix = np.tanh(convolution(w["last_kernels"][:, begin : begin + columns], matrix))
    return Encoded([], [Ends((dropped(options, matrix[:, 0]),), None)])


def convolution(kernel: Array, matrix: Array) -> Array:
    """Each row with its own kernel, where all of it fits."""
    width = kernel.shape[1]
    return np.array(
        [
            [sum(kernel[row, j] * matrix[row, i + j] for j in range(width)) for i in range(matrix.shape[1] - width + 1)]
            for row in range(len(matrix))
        ]
    )


def encoder_decoder(w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]) -> list[Array]:
    """Sutskever et al. 2014, section 2: the encoder's last states start the decoder; a language model has none."""
    x = [dropped(options, w["embedding.weight"][token]) for token in ids]
    for layer in range(options.get("num_layers", 1)):
        of_layer = w.at(f"layers.{layer}.forward_cell")
        state = encoded.ends[layer].joined() if encoded.ends else zeros(of_layer, options)
        outputs = []
        for word in x:
            x_t = of_layer.affine("input_projection", drop_input(options, state, word))
            state = cell(of_layer, options, x_t, state)
            outputs.append(dropped(options, state[0]))
        x = outputs
    return [w.affine("output_projection", h) for h in x]


def attentional(w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]) -> list[Array]:
    """The paper whose parts a decoder has."""
    if options["attention"]["class"] == "GatedAttention":
        return show_attend_tell(w, options, encoded, ids)
    if options.get("context_cell"):
        return conditional_gru(w, options, encoded, ids)
    return rnnsearch(w, options, encoded, ids)


def rnnsearch(w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]) -> list[Array]:
    """Bahdanau et al. 2015, A.2.2: look, generate from s_{i-1}, update; Sennrich's lectures generate from s_i."""
    top = encoded.ends[-1]
    backward = top.forward if top.backward is None else top.backward
    s = np.tanh(w.affine("initial_state.projection", backward[0]))  # s_0 = tanh(W_s <-h_1)
    state = (s, *zeros(w.at("cell"), options)[1:])
    alpha: Array | None = None
    logits = []
    for token in ids:
        y = dropped(options, w["embedding.weight"][token])
        c, alpha = additive_attention(w.at("attention"), options, state[0], encoded.annotations, alpha)
        x = w.affine("cell.input_projection", y) + w.product("cell_context_projection", c)
        before, state = state, cell(w.at("cell"), options, x, state)
        read = before[0] if options["order"] == "look_generate_update" else state[0]
        t = (
            w.product("readout.projections.state", read)
            + w.affine("readout.projections.embedding", y)
            + w.product("readout.projections.context", c)
        )
        t = maxout(t) if options["readout"]["class"] == "Maxout" else np.tanh(t)
        logits.append(w.affine("output_projection", dropped(options, t)))  # V_o t_i
    return logits


def rnnencdec(w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]) -> list[Array]:
    """Cho et al. 2014, appendix A.1.2; G = G_l G_r where it has a rank of its own, section 4.1."""
    factor = w["output_factor.weight"] if options.get("output_rank") else None
    c = dropped(options, np.tanh(w.affine("summary_projection", encoded.ends[-1].joined()[0])))  # tanh(V h_N)
    h = np.tanh(w.affine("initial_state_projection", c))  # tanh(V' c)
    state = (h, *zeros(w.at("cell"), options)[1:])
    logits = []
    for token in ids:
        y = dropped(options, w["embedding.weight"][token])
        x = w.affine("cell.input_projection", drop_input(options, state, y))
        of_summary, inside = np.zeros(len(x)), np.zeros(len(h))
        if options["summary"] != "start":
            of_summary = w.product("cell_summary_projection", c)
        if options["cell"] == "gru":
            inside = of_summary[2 * len(h) :].copy()  # C c
            of_summary[2 * len(h) :] = 0
        state = cell(w.at("cell"), options, x + of_summary, state, inside)
        s = w.product("readout_projections.state", state[0]) + w.affine("readout_projections.embedding", y)
        if options["summary"] == "readout":
            s += w.product("readout_projections.summary", c)
        s = maxout(s)
        logits.append(
            w.affine("output_projection", dropped(options, s) if factor is None else factor @ dropped(options, s))
        )
    return logits


def conditional_gru(w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]) -> list[Array]:
    """p(y_j) = softmax(W_o t_j) (Sennrich et al. 2017, section 2)."""
    steps = conditional_gru_steps(w, options, encoded, ids)
    return [w.affine("output_projection", dropped(options, t)) for t, *_ in steps]


def conditional_gru_steps(
    w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]
) -> Iterator[tuple[Array, ...]]:
    """t_j, s_j, y_{j-1}, c_j and the alignments of each step: look, update, generate.

    Deep as in Miceli Barone et al. 2017, section 2.3.2.

    Layer normalisation stands where their code has it: around each product of W_init, of the attention, and of t. So do
    the masks of a sentence: on y, s' and c where the GRUs, the attention and t read them, on s in t.
    """
    layer_norm = options["readout"].get("layer_norm")
    first, further = options, {**options, "transition_depth": options["context_cell"].get("transition_depth", 1)}

    def normed(name: str, product: Array) -> Array:
        return norm(w.at(f"{name}.norm"), product) if layer_norm else product

    mean = np.mean(encoded.annotations, axis=0)
    s = np.tanh(normed("initial_state.projection", w.affine("initial_state.projection", mean)))
    with_bias = {"embedding"} | ({"state", "context"} if layer_norm else set())
    alpha: Array | None = None
    for token in ids:
        y = drop_input(first, (s,), dropped(options, w["embedding.weight"][token]))
        (s,) = cell(w.at("cell"), first, w.affine("cell.input_projection", y), (s,))  # s'_j = GRU_1(y_{j-1}, s_{j-1})
        query = drop_state(further, s)
        c, alpha = additive_attention(w.at("attention"), options, query, encoded.annotations, alpha)
        c = drop_input(further, (s,), c)
        x = w.affine("context_cell.input_projection", c)
        (s,) = cell(w.at("context_cell"), further, x, (s,))  # s_j = GRU_2(c_j, s'_j), and so on without input
        products = []
        for part, x in (("state", drop_state(first, s)), ("embedding", y), ("context", c)):
            name = f"readout.projections.{part}"
            products.append(normed(name, w.affine(name, x) if part in with_bias else w.product(name, x)))
        yield np.tanh(sum(products)), s, y, c, alpha


def show_attend_tell(w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]) -> list[Array]:
    """Section 3.1.2, equations 1 to 7, with the soft attention and the gate of section 4.2."""
    mean = np.mean(encoded.annotations, axis=0)
    h, c = np.split(np.tanh(w.affine("initial_state.projection", mean)), 2)  # f_init,h and f_init,c
    logits = []
    for token in ids:
        y = dropped(options, w["embedding.weight"][token])
        z, _ = additive_attention(w.at("attention"), options, h, encoded.annotations, None)
        z = sigmoid(w.affine("attention.gate_projection", h)) * z  # beta_t
        h, c = lstm(w.at("cell"), w.affine("cell.input_projection", y) + w.product("cell_context_projection", z), h, c)
        deep = y + w.affine("readout.projections.state", h) + w.product("readout.projections.context", z)
        logits.append(w.affine("output_projection", dropped(options, deep)))
    return logits


def luong(w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]) -> list[Array]:
    """Luong et al. 2015, sections 3.1 to 3.3."""
    return attend_after_the_top_layer(w, options, [(w.at("attention"), encoded)], ids)


def attend_after_the_top_layer(
    w: Weights, options: Options, sources: Sequence[tuple[Weights, Encoded]], ids: Sequence[int]
) -> list[Array]:
    """The same with a context from each source, with its attention's weights (Zoph & Knight 2016, section 3.4)."""
    states = [ends.joined() for ends in sources[0][1].ends]
    fed, logits = np.zeros(len(states[0][0])), []
    for t, token in enumerate(ids):
        h = dropped(options, w["embedding.weight"][token])
        for layer in range(options["num_layers"]):
            of_layer = w.at(f"layers.{layer}.forward_cell")
            x = drop_input(options, states[layer], dropped(options, h) if layer else h)
            x = of_layer.affine("input_projection", x)
            if layer == 0 and options["input_feeding"]:
                x = x + w.product("feed_projection", fed)
            states[layer] = cell(of_layer, options, x, states[layer])
            h = states[layer][0]
        contexts = [
            luong_weights(own, options["attention"], h, source.annotations, t) @ np.array(source.annotations)
            for own, source in sources
        ]
        fed = np.tanh(w.product("attentional_projection", np.concatenate((*contexts, h))))  # h~_t, equation 5
        logits.append(w.affine("output_projection", dropped(options, fed)))  # equation 6
    return logits


def luong_weights(w: Weights, options: Options, h_t: Array, h: Sequence[Array], t: int) -> Array:
    """a_t of each h_s: the scores of section 3.1 in the windows of section 3.2."""
    S, D = len(h), options["half_window"]
    if options["score"] == "dot":
        scores = [h_t @ h_s for h_s in h]
    elif options["score"] == "general":
        scores = [h_t @ w.product("memory_projection", h_s) for h_s in h]
    elif options["score"] == "concat":
        query = w.product("query_projection", h_t)
        scores = [w["energy_weight"] @ np.tanh(query + w.product("memory_projection", h_s)) for h_s in h]
    else:  # location, equation 8: one weight for each position that it knows
        scores = list(w.product("location_projection", h_t))[:S]
    p_t = float(min(t, S - 1))  # local-m
    if options["window"] == "local-p":  # equation 9
        p_t = S * float(sigmoid(w["centre_weight"] @ np.tanh(w.product("centre_projection", h_t))))
    inside = [s for s in range(len(scores)) if options["window"] == "global" or abs(s - p_t) <= D]
    a = np.zeros(S)
    a[inside] = softmax(np.array([scores[s] for s in inside]))
    if options["window"] == "local-p":  # equation 10, sigma = D / 2
        a *= [math.exp(-((s - p_t) ** 2) / (2 * (D / 2) ** 2)) for s in range(S)]
    return a


def summary(w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]) -> list[Array]:
    """RCTM I of Kalchbrenner & Blunsom 2013, section 3: S csm(e) in every step."""
    s = w.product("summary_projection", encoded.ends[-1].joined()[0])
    h, logits = np.zeros(len(s)), []
    for token in ids:
        h = elman(
            w.at("cell"), w.affine("cell.input_projection", dropped(options, w["embedding.weight"][token])) + s, h
        )
        logits.append(w.affine("output_projection", dropped(options, h)))
    return logits
