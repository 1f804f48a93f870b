"""ONNX step function: the graphs of a bundle in ONNX Runtime.

``encoder.onnx`` runs once per batch and returns the memory (``memory.i``, one entry per sentence) and the first caches
(``cache.i``, ``[sentences, 1, ...]``). ``decoder_step.onnx`` gathers the caches by ``parents``, reads one token per
hypothesis and returns the ``k`` best continuations and ``next_cache.i``: reordering needs no copy here, and only the
candidates' probabilities leave the graph. ``slots.i``, ``[sentences, heads, slots, width]``, holds a Transformer's keys
and values for all rows of all steps and is never reordered; in a decoder-only one the source comes first. With slots,
``cache.0`` is the attention bias, ``[sentences, beams, slots]``, 0 where a hypothesis sees a slot; slots that none sees
are dropped from time to time. If all tokens are requested, ``all_log_probs`` holds the first ``all`` of them by id,
unsorted; older bundles lack it. The step of a bundle with a shortlist reads ``shortlist``, the words to compute, if
any; candidates and log probabilities are then indices into it.

The encoder of a model that reads feature vectors has an input ``src_features``, ``[sentences, src_len, dim]``, one
vector for each token, 0 at EOS and padding.

``decoder_block.onnx``, which older bundles lack, runs the step and beam search's choice several times, and
``decoder_greedy.onnx`` does so for one sentence with a beam of 1, see ``softsearch.runtime.contract``.

If source and target share embeddings, the encoder has an input ``embedding_table``, whose value is the constant of that
name in ``decoder_step.onnx``.
"""

import copy
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError, InputError, printable
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.contract import SHORTLIST_INPUTS, STEP_OUTPUTS, check_contract, check_shape, read_choices
from softsearch.runtime.graph_check import STEPS
from softsearch.runtime.graph_session import (
    ORT_ERRORS,
    LazySession,
    describe,
    embedding_table,
    open_graph,
    open_session,
    with_constants,
)
from softsearch.runtime.manifest import (
    DECODER_BLOCK,
    DECODER_GREEDY,
    DECODER_STEP,
    EMBEDDING_TABLE,
    ENCODER,
    FEATURES,
    SINGLE,
)
from softsearch.runtime.onnx_state import OnnxState, read_candidates, read_words
from softsearch.runtime.providers import Provider
from softsearch.search.interface import Candidates, OptionalAlignments, StepFunction
from softsearch.text.features import padded_features
from softsearch.text.vocabulary import PAD, with_eos

if TYPE_CHECKING:
    from softsearch.search.shortlist import Shortlist

_NO_MEMORY = "Available memory of"  # part of a message of ONNX Runtime's allocator
_COMPACT_EVERY = 2  # steps


class OnnxStepFunction(OptionalAlignments):
    """A ``StepFunction`` over the graphs of a bundle; threads may share it.

    A call runs on one thread: parallel batches use the cores better than several threads in one batch.

    Raises:
        BundleError: a graph cannot be loaded, differs from the manifest or breaks the contract above, or the bundle is
            for other programming languages.
        ConfigError: ONNX Runtime lacks or does not use the provider.
    """

    def __init__(self, bundle: Bundle, provider: Provider = "cpu") -> None:
        if bundle.manifest.is_single:
            raise BundleError(
                f"bundle {bundle.path}: {SINGLE} is for ONNX Runtime in other programming languages, and softsearch "
                "does not run it; export the checkpoint with format=bundle"
            )
        self.vocab_size, self.feature_dim = bundle.manifest.tgt_vocab_size, bundle.manifest.feature_dim
        self._name = f"bundle {bundle.path}"
        graphs = {file: open_graph(bundle.files, file, f"{self._name}: ") for file in (ENCODER, DECODER_STEP)}
        self._encoder = open_session(graphs[ENCODER], f"{self._name}: {ENCODER}", provider)
        self._step: Any = LazySession(graphs[DECODER_STEP], f"{self._name}: {DECODER_STEP}", provider)
        self._block: _Block | None = None
        described = {"encoder": describe(self._encoder), "decoder_step": self._step.described}
        if "decoder_block" in bundle.manifest.graphs:
            steps = open_graph(bundle.files, DECODER_BLOCK, f"{self._name}: ")  # which has the constants of the step
            whole = with_constants(steps, graphs[DECODER_STEP])
            block_session = LazySession(whole, f"{self._name}: {DECODER_BLOCK}", provider)
            described["decoder_block"] = block_session.described
        self._greedy_graph = None
        if "decoder_greedy" in bundle.manifest.graphs:
            steps = open_graph(bundle.files, DECODER_GREEDY, f"{self._name}: ")
            self._greedy_graph = with_constants(steps, graphs[DECODER_STEP])
        ports = check_contract(self._name, bundle.manifest.graphs, described)
        self._manifest_graphs, self._described = bundle.manifest.graphs, described
        encoder, step = ports["encoder"], ports["decoder_step"]
        self._encoder_inputs, self._step_inputs = list(encoder["inputs"]), list(step["inputs"])
        encoded, outputs = encoder["outputs"], step["outputs"]
        if block := ports.get("decoder_block"):
            self._block = _Block(block_session, list(block["inputs"]), list(block["outputs"]))
        self._memory = [name for name in encoded if name.startswith("memory.")]
        self._cache = [name for name in encoded if name.startswith(("cache.", "slots."))]
        self._slots = any(name.startswith("slots.") for name in self._cache)
        self.has_attention = "alignments" in outputs
        self._table = embedding_table(bundle, graphs[DECODER_STEP])
        self._shortlist: Shortlist | None = None
        self._takes_shortlist = SHORTLIST_INPUTS.keys() <= set(self._step_inputs)
        self._has_all = "all_log_probs" in outputs and "all" in self._step_inputs
        self._others = [name for name in outputs if name not in (*STEP_OUTPUTS, "all_log_probs")]
        self._opened, self._provider = (bundle.path, bundle.sha256), provider

    @property
    def has_block(self) -> bool:
        """Tells whether ``run_block`` can be called; older bundles lack its graph, and shortlists exclude it."""
        return self._block is not None and self._shortlist is None

    @functools.cached_property
    def _greedy(self) -> "_Block":
        """The block of greedy search, opened when it is first needed: it takes the memory of the weights once more."""
        assert self._greedy_graph is not None
        session = open_session(self._greedy_graph, f"{self._name}: {DECODER_GREEDY}", self._provider)
        described = self._described | {"decoder_greedy": describe(session)}
        ports = check_contract(self._name, self._manifest_graphs, described)["decoder_greedy"]
        return _Block(session, list(ports["inputs"]), list(ports["outputs"]))

    def without_block(self) -> "OnnxStepFunction":
        """Returns the same step function for single steps."""
        other = copy.copy(self)
        other._block = None
        return other

    def without_alignments(self) -> "OnnxStepFunction":
        other = copy.copy(self)
        other._others = [name for name in self._others if name != "alignments"]
        return other

    @functools.cached_property
    def heads(self) -> dict[str, Any]:
        """See ``heads_of``; the bundle is read once more for it."""
        from softsearch.runtime.heads import heads_of, reopen

        return heads_of(reopen(*self._opened))

    def with_head(self, name: str) -> "OnnxStepFunction":
        """Returns the same step function with the weights of one of its ``heads`` as alignments, or of a mean."""
        from softsearch.runtime.heads import HeadSession

        other = copy.copy(self)
        other._step = HeadSession(self._weights_session, self.heads[name])
        return other

    @functools.cached_property
    def _weights_session(self) -> Any:
        from softsearch.runtime.heads import reopen, step_with_weights

        return open_session(step_with_weights(reopen(*self._opened)), self._name, self._provider)

    def with_shortlist(self, shortlist: "Shortlist") -> StepFunction:
        """Restricts the step function to a shortlist; older bundles compute all words and mask the others."""
        if not self._takes_shortlist:
            from softsearch.search.shortlist import ShortlistStep

            return ShortlistStep(self, shortlist)
        other = copy.copy(self)
        other._shortlist = shortlist
        return other

    def start(self, src: Sequence[Sequence[int]]) -> OnnxState:
        sentences = [with_eos(ids) for ids in src]
        lengths = np.array([len(ids) for ids in sentences])
        mask = np.arange(lengths.max()) < lengths[:, None]  # [sentences, src_len]
        tokens = np.full(mask.shape, PAD, dtype=np.int64)
        tokens[mask] = np.concatenate(sentences)
        feeds = {"src_tokens": tokens, "src_mask": mask, EMBEDDING_TABLE: self._table}
        features = padded_features(src, self.feature_dim, self._name)
        if features is not None:
            feeds[FEATURES] = features
        names = [*self._memory, *self._cache]
        values = _run(self._encoder, names, {name: feeds[name] for name in self._encoder_inputs})
        for name, value in zip(names, values, strict=True):
            axes = (len(src), 1) if name.startswith("cache.") else (len(src),)
            check_shape(ENCODER, name, value.shape[: len(axes)], axes)
        memory, cache = tuple(values[: len(self._memory)]), tuple(values[len(self._memory) :])
        words = None if self._shortlist is None else read_words(self._shortlist(src))
        return OnnxState(mask, memory, cache, np.zeros((len(src), 1), dtype=np.int64), 0, words, np.arange(len(src)))

    def step(self, tokens: NDArray[np.int64], state: OnnxState, k: int) -> tuple[Candidates, OnnxState]:
        _, beams = shape = state.parents.shape
        if self._slots and state.position % _COMPACT_EVERY == 1:
            state = state.without_dead_slots()
        words = state.words
        whole = self._has_all and k == self.vocab_size
        size = k if words is None else min(k, words.used)
        feeds = self._feeds(state) | {
            "tokens": state.per_sentence(tokens),
            "position": np.full(shape, state.position, dtype=np.int64),
            "k": np.array([1 if whole else size], dtype=np.int64),
            "all": np.array([size if whole else 0], dtype=np.int64),
        }
        wanted = ["all_log_probs"] if whole else [*STEP_OUTPUTS]
        names = [*wanted, *self._others]
        values = _run(self._step, names, {name: feeds[name] for name in self._step_inputs})
        outputs = dict(zip(names, values, strict=True))
        axes = dict.fromkeys(wanted, (*shape, size)) | {"alignments": (*shape, state.src_mask.shape[1])}
        for name, value in outputs.items():
            expected = axes.get(name, shape[:1] if name.startswith("next_slots.") else shape)
            check_shape(DECODER_STEP, name, value.shape if name in axes else value.shape[: len(expected)], expected)
        rows = {name: state.per_row(outputs[name]) for name in axes if name in outputs}
        candidates = read_candidates(rows, words, self.vocab_size)
        in_place = np.zeros(shape, dtype=np.int64) + np.arange(beams)
        cache = tuple(outputs[f"next_{name}"] for name in self._cache)
        return candidates, state._replace(cache=cache, parents=in_place, position=state.position + 1)

    def _feeds(self, state: OnnxState) -> dict[str, NDArray[Any]]:
        """The graph inputs taken from a state."""
        words = state.words
        return {
            "parents": state.parents,
            "shortlist": np.zeros(0, dtype=np.int64) if words is None else words.tokens,
            "shortlist_bias": np.zeros((len(state.src_mask), 1, 0), np.float32) if words is None else words.bias,
            "src_mask": state.src_mask,
            **dict(zip(self._memory, state.memory, strict=True)),
            **dict(zip(self._cache, state.cache, strict=True)),
        }

    def run_block(
        self, search: dict[str, NDArray[Any]], state: OnnxState, steps: int
    ) -> tuple[dict[str, NDArray[Any]], OnnxState]:
        """Runs at most ``steps`` steps of a beam search, fewer when every sentence is done.

        Args:
            search: the search's settings and state by name, see ``softsearch.search.blocks.in_blocks``.
            state: the step function's state.
            steps: at least 1.

        Returns:
            The choices, see ``read_choices``, and the next state.

        Raises:
            BundleError: the graph chose a word or a hypothesis that does not exist.
        """
        if self._slots and state.position:
            state = state.without_dead_slots()
        counts = {STEPS: np.array(steps), "written": np.array(state.position)}
        feeds = self._feeds(state) | search | counts
        beams, n_best = int(search["size"][0]), int(search["returned"][0])
        is_greedy = beams == 1 == len(state.src_mask) and state.src_mask.all()  # a sentence of a batch has padding
        block, file = self._block, DECODER_BLOCK
        if is_greedy and self._greedy_graph is not None:
            block, file = self._greedy, DECODER_GREEDY
        assert block is not None
        values = _run(block.session, block.outputs, {name: feeds[name] for name in block.inputs})
        outputs = dict(zip(block.outputs, values, strict=True))
        choices = read_choices(outputs, (steps, len(state.src_mask), beams, n_best), self.vocab_size)
        cache = tuple(outputs[f"next_{name}"] for name in self._cache)
        parents = choices["all_parents"]
        rows = (len(state.src_mask), beams if len(parents) > 1 else state.parents.shape[1])  # read by the last step
        for name, value in zip(self._cache, cache, strict=True):
            axes = rows if name.startswith("cache.") else rows[:1]
            check_shape(file, f"next_{name}", value.shape[: len(axes)], axes)
        return choices, state._replace(cache=cache, parents=parents[-1], position=state.position + len(parents))

    def select(self, state: OnnxState, rows: NDArray[np.int64]) -> OnnxState:
        """Reorders, repeats or drops rows within their sentences; the next step moves the caches."""
        return state._replace(parents=state.per_sentence(state.per_row(state.parents)[rows]))

    def keep(self, state: OnnxState, sentences: NDArray[np.int64]) -> OnnxState:
        return state.keep(sentences)


class _Block(NamedTuple):
    """A graph of several steps."""

    session: Any
    inputs: list[str]
    outputs: list[str]


def _run(session: Any, outputs: list[str], feeds: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    # Keeping the caches as OrtValues (run_with_ort_values, IO binding) was measured: not faster, and slower at batch 1.
    try:
        return list(session.run(outputs, feeds))
    except ORT_ERRORS as error:
        if _NO_MEMORY in str(error):
            raise InputError(
                "the model's graph needs more than half of this machine's memory; translate fewer tokens at once, "
                "or with fewer hypotheses"
            ) from error
        raise InputError(f"ONNX Runtime failed in the model's graph: {printable(str(error))}") from error
