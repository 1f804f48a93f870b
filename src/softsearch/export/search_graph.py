"""Beam search as ONNX operators, equal to ``BeamSearch``.

``start`` prepares a batch; ``count``, ``rank`` and ``advance`` process the candidates of one step, and ``follow`` and
``greedy`` those of one sentence's steps with a beam of 1; ``choose`` makes n-best lists from all steps, and ``trace``
reads their tokens.
``softsearch.export.search_loop`` joins the functions of a step with a model, ``softsearch.export.single_graph``
all of them. They are ONNX written as Python: ``op.Add`` is an operator, and shapes broadcast as in NumPy. A finished
sentence stays in its batch, with hypotheses of log probability -inf, which cannot be continued.

Log probabilities are summed in double precision, as in Python's search, so that both choose the same hypotheses.
"""

# The functions are converted to ONNX and never run; their types are those of ONNX.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202

from onnxscript import BOOL, DOUBLE, FLOAT, INT64, graph, script
from onnxscript import opset23 as op

from softsearch.text.vocabulary import BOS, EOS, PAD

Ints, Doubles, Floats, Bools = INT64[...], DOUBLE[...], FLOAT[...], BOOL[...]  # of any shape
_NEVER = float("-inf")
_CUT_OFF = -3e38  # ranks below every finished hypothesis


@script(default_opset=op)
def start(
    src_tokens: Ints,
    beam: Ints,
    n_best: Ints,
    max_length: Ints,
    length_penalty: Floats,
    usual_limits: Ints,
    norm_shift: Doubles,
    norm_divisor: Doubles,
    vocab_size: Ints,
) -> tuple[Bools, Ints, Ints, Doubles, Doubles, Ints, Ints, Ints, Ints, Ints, Ints, Doubles, Doubles]:
    """The constants of a search, and its state before the first step, when every sentence has one hypothesis.

    ``usual_limits`` are those of sources of 0, 1, 2, ... words. A score is a log probability divided by
    ``((norm_shift + length) / norm_divisor) ** length_penalty``.
    """
    src_mask = op.Not(op.Equal(src_tokens, PAD))  # [sentences, src_len]
    words = op.ReduceSum(op.Cast(src_mask, to=INT64.dtype), [1]) - 1  # [sentences, 1] without EOS
    usual = op.Gather(usual_limits, op.Min(words, op.Size(usual_limits) - 1))
    given = op.Unsqueeze(max_length, [1])  # [sentences, 1] or [1, 1]
    limits = op.Where(op.Greater(given, 0), given, usual)  # [sentences, 1], in tokens, EOS included
    longest = op.ReduceMax(limits, keepdims=0)
    lengths = op.Cast(op.Range(0, longest + 1, 1), to=DOUBLE.dtype)
    norms = op.Pow((lengths + norm_shift) / norm_divisor, op.Cast(length_penalty, to=DOUBLE.dtype))  # [longest + 1]
    limit_norms = op.Gather(norms, limits)  # [sentences, 1]
    size = op.Max(op.Min(op.Reshape(beam, [1]), vocab_size - 1), [1])  # [1] hypotheses per sentence
    returned = op.Max(op.Min(op.Reshape(n_best, [1]), size), [1])  # [1]
    k = size + 1  # candidates of a hypothesis: at most one is EOS
    twice = size * 2
    sentences = op.Shape(src_tokens, start=0, end=1)
    rows = op.Concat(sentences, [1], axis=0)
    zeros = op.Expand(0, rows)  # [sentences, 1]
    tokens = op.Expand(BOS, rows)
    log_probs = op.Expand(op.Cast(0.0, to=DOUBLE.dtype), rows)
    best_scores = op.Expand(op.Cast(_NEVER, to=DOUBLE.dtype), op.Concat(sentences, returned, axis=0))
    return (
        src_mask,
        limits,
        longest,
        norms,
        limit_norms,
        size,
        returned,
        k,
        twice,
        zeros,
        tokens,
        log_probs,
        best_scores,
    )


@script(default_opset=op)
def count(iteration: Ints, written: Ints, tokens: Ints) -> tuple[Ints, Ints]:
    """The tokens that are written when the loop's ``iteration`` begins, and the position of every row."""
    step = written + iteration
    position = op.Expand(step, op.Shape(tokens))
    return step, position


@script(default_opset=op)
def rank(
    log_probs: Doubles, step_log_probs: Floats, candidates: Ints, k: Ints, twice: Ints
) -> tuple[Doubles, Ints, Ints]:
    """The best continuations of each sentence: log probabilities, tokens, and the rows that they continue.

    There are ``k`` candidates of each hypothesis, ``[sentences, rows, k]``. ``log_probs`` are those of the hypotheses,
    ``[sentences, rows]``. Ties go to the lower row, then to the model's order. ``twice`` the beam's size are enough,
    because half of them at most are EOS; at the first step there are fewer.
    """
    totals = op.Unsqueeze(log_probs, [2]) + op.Cast(step_log_probs, to=DOUBLE.dtype)
    totals = op.Reshape(totals, [0, -1])
    best, order = op.TopK(totals, op.Min(twice, op.Shape(totals, start=1, end=2)))  # [sentences, continuations]
    tokens = op.GatherElements(op.Reshape(candidates, [0, -1]), order, axis=1)
    rows = order / k
    return best, tokens, rows


@script(default_opset=op)
def advance(
    step: Ints,
    best: Doubles,
    tokens: Ints,
    rows: Ints,
    best_scores: Doubles,
    ended: Ints,
    limits: Ints,
    norms: Doubles,
    limit_norms: Doubles,
    size: Ints,
    returned: Ints,
) -> tuple[Bools, Ints, Ints, Doubles, Doubles, Ints, Ints, Ints, Doubles, Doubles, Ints]:
    """One step of the search, after those that wrote ``step`` tokens, from what ``rank`` found.

    ``best_scores`` are those of hypotheses that have ended, ``[sentences, returned]``, and ``ended`` counts these,
    ``[sentences, 1]``. ``size`` is the beam's.
    """
    never = op.Cast(_NEVER, to=DOUBLE.dtype)
    is_eos = op.Equal(tokens, EOS)
    # EOS ends a hypothesis only if it is among the best of the beam's size.
    end_log_probs = op.Slice(op.Where(is_eos, best, never), [0], size, [1])  # [sentences, size]
    end_rows = op.Slice(rows, [0], size, [1])
    length = step + 1
    scores = end_log_probs / op.Gather(norms, length)
    next_best_scores, _ = op.TopK(op.Concat(best_scores, scores, axis=1), returned)
    has_ended = op.Cast(op.Greater(end_log_probs, never), to=INT64.dtype)
    next_ended = ended + op.ReduceSum(has_ended, [1])
    survivors, chosen = op.TopK(op.Where(is_eos, never, best), size)  # [sentences, size]
    next_tokens = op.GatherElements(tokens, chosen, axis=1)
    parents = op.GatherElements(rows, chosen, axis=1)
    # Log probabilities only fall, so this bounds the score of everything that may still come.
    bound = op.Gather(survivors, [0], axis=1) / limit_norms
    hopeful = op.Greater(bound, op.Gather(next_best_scores, [-1], axis=1))
    within = op.And(op.Less(length, limits), op.Less(next_ended, size))
    next_log_probs = op.Where(op.And(hopeful, within), survivors, never)
    going = op.Greater(op.ReduceMax(next_log_probs, keepdims=0), never)
    # A Loop returns the state and the history, and no value twice.
    added_tokens, added_parents = op.Identity(next_tokens), op.Identity(parents)
    return (
        going,
        next_tokens,
        parents,
        next_log_probs,
        next_best_scores,
        next_ended,
        added_tokens,
        added_parents,
        survivors,
        end_log_probs,
        end_rows,
    )


@script(default_opset=op)
def locate(iteration: Ints, written: Ints) -> Ints:
    """The position of the only hypothesis when the loop's ``iteration`` begins, ``[1, 1]``."""
    position = op.Reshape(written + iteration, [1, 1])
    return position


@script(default_opset=op)
def follow(candidates: Ints) -> tuple[Bools, Ints]:
    """Greedy search's choice: the best of the two ``candidates`` ``[1, 1, 2]``, and whether to go on."""
    best = op.Slice(candidates, [0], [1], [2])
    next_tokens = op.Squeeze(best, [2])
    going = op.Not(op.Equal(op.Squeeze(best), EOS))
    return going, next_tokens


@script(default_opset=op)
def greedy(
    step_log_probs: Floats,
    candidates: Ints,
    written: Ints,
    log_probs: Doubles,
    best_scores: Doubles,
    ended: Ints,
    limits: Ints,
    norms: Doubles,
) -> tuple[Ints, Ints, Doubles, Doubles, Ints, Doubles, Doubles, Ints, Floats]:
    """What ``advance`` with a beam of 1 finds in steps that only ``follow``: all of them at once.

    The first two arguments are those of the steps, ``[steps, 1, 1, 2]``. When EOS is the best word, the second one
    survives, as in a beam.
    """
    never = op.Cast(_NEVER, to=DOUBLE.dtype)
    gains = op.Cast(step_log_probs, to=DOUBLE.dtype)
    best_gains = op.Squeeze(op.Slice(gains, [0], [1], [3]), [3])  # [steps, 1, 1]
    sums = op.CumSum(op.Concat(op.Unsqueeze(log_probs, [0]), best_gains, axis=0), 0)
    totals = op.Unsqueeze(op.Slice(sums, [0], [-1], [0]), [3]) + gains  # [steps, 1, 1, 2]
    best, second = op.Split(totals, axis=3, num_outputs=2)
    best_tokens, second_tokens = op.Split(candidates, axis=3, num_outputs=2)
    ends = op.Equal(best_tokens, EOS)
    survivors = op.Squeeze(op.Where(ends, second, best), [3])
    added_tokens = op.Squeeze(op.Where(ends, second_tokens, best_tokens), [3])
    end_log_probs = op.Squeeze(op.Where(ends, best, never), [3])
    added_parents = added_tokens - added_tokens
    end_rows = op.Identity(added_parents)
    # The state after the last step, [1, 1]
    length = written + op.Squeeze(op.Shape(candidates, start=0, end=1))
    end = op.Gather(end_log_probs, -1, axis=0)
    has_ended = op.Greater(end, never)
    next_best_scores = op.Max(best_scores, end / op.Gather(norms, length))
    next_ended = ended + op.Cast(has_ended, to=INT64.dtype)
    goes_on = op.And(op.Less(length, limits), op.Not(has_ended))
    next_log_probs = op.Where(goes_on, op.Gather(survivors, -1, axis=0), never)
    checked = op.ReduceSum(step_log_probs, [1, 2, 3], keepdims=0)
    return (
        added_parents,
        added_tokens,
        survivors,
        end_log_probs,
        end_rows,
        next_log_probs,
        next_best_scores,
        next_ended,
        checked,
    )


@script(default_opset=op)
def see_slots(slots: Floats) -> Floats:
    """The bias of slots that the only hypothesis sees, ``[1, 1, slots]``."""
    bias = op.Expand(0.0, op.Concat([1], [1], op.Shape(slots, start=2, end=3), axis=0))
    return bias


@script(default_opset=op)
def choose(
    all_parents: Ints,
    all_tokens: Ints,
    survivors: Doubles,
    end_log_probs: Doubles,
    end_rows: Ints,
    limits: Ints,
    norms: Doubles,
    size: Ints,
    returned: Ints,
) -> tuple[Ints, Floats, Floats, Ints, Ints]:
    """The n-best lists: hypotheses that ended by score, then those that were cut off at the length limit.

    The first five arguments are what ``advance`` returned at every step, ``[steps, sentences, size]``. Returns
    ``[sentences, returned]`` each, with the last token of every hypothesis and the row that wrote it.
    """
    never = op.Cast(_NEVER, to=DOUBLE.dtype)
    steps = op.Shape(all_parents, start=0, end=1)
    # What was alive at the limit of its sentence, [sentences, size]
    last = op.Min(limits, steps) - 1  # [sentences, 1]
    alive = op.GatherND(op.Transpose(survivors, perm=[1, 0, 2]), last, batch_dims=1)
    cut_off = op.Where(op.LessOrEqual(limits, steps), alive, never)
    cut_off_rows = op.GatherND(op.Transpose(all_parents, perm=[1, 0, 2]), last, batch_dims=1)
    cut_off_tokens = op.GatherND(op.Transpose(all_tokens, perm=[1, 0, 2]), last, batch_dims=1)
    cut_off_rank = op.Where(op.Greater(cut_off, never), op.Cast(_CUT_OFF, to=DOUBLE.dtype), never)
    # It stands behind all steps: [steps + 1, sentences, size], then [sentences, (steps + 1) * size]
    step = op.Unsqueeze(op.Range(0, op.Squeeze(steps), 1), [1, 2])  # [steps, 1, 1]
    end_scores = end_log_probs / op.Gather(norms, step + 1)
    ranks = op.Transpose(op.Concat(end_scores, op.Unsqueeze(cut_off_rank, [0]), axis=0), perm=[1, 0, 2])
    log_probs_by_step = op.Transpose(op.Concat(end_log_probs, op.Unsqueeze(cut_off, [0]), axis=0), perm=[1, 0, 2])
    rows_by_step = op.Transpose(op.Concat(end_rows, op.Unsqueeze(cut_off_rows, [0]), axis=0), perm=[1, 0, 2])
    rank, best = op.TopK(op.Reshape(ranks, [0, -1]), returned)  # ties to the earlier one
    best_log_probs = op.GatherElements(op.Reshape(log_probs_by_step, [0, -1]), best, axis=1)
    last_rows = op.GatherElements(op.Reshape(rows_by_step, [0, -1]), best, axis=1)
    ended_at = best / size
    is_cut_off = op.Equal(ended_at, steps)
    lengths = op.Where(op.Greater(rank, never), op.Where(is_cut_off, limits, ended_at + 1), 0)
    cut_off_token = op.GatherElements(cut_off_tokens, op.Mod(best, size), axis=1)
    last_tokens = op.Where(is_cut_off, cut_off_token, EOS)
    scores = op.Cast(best_log_probs / op.Gather(norms, lengths), to=FLOAT.dtype)
    log_probs = op.Cast(best_log_probs, to=FLOAT.dtype)
    return lengths, scores, log_probs, last_rows, last_tokens


@script(default_opset=op)
def trace(
    all_parents: Ints, all_tokens: Ints, lengths: Ints, last_rows: Ints, last_tokens: Ints
) -> tuple[Ints, Ints, Bools]:
    """Reads tokens off the back-pointers of all steps, ``[steps, sentences, size]``, from the last to the first.

    Returns the tokens ``[sentences, returned, longest]``, and, steps first, the row that wrote each and whether it is
    one.
    """
    longest = op.ReduceMax(lengths, keepdims=0)
    parents = op.Slice(all_parents, [0], op.Reshape(longest, [1]), [0])
    chosen_tokens = op.Slice(all_tokens, [0], op.Reshape(longest, [1]), [0])
    step = op.Unsqueeze(op.Range(0, longest, 1), [1, 2])  # [longest, 1, 1]
    written = op.Less(step, lengths)  # [longest, sentences, returned]
    before_last = op.Less(step, lengths - 1)

    @graph()
    def follow(row, parents, before_last):
        writer = op.Where(before_last, op.GatherElements(parents, row, axis=1), row)
        return writer, op.Identity(row), op.Identity(writer)

    _, rows, writers = op.Scan(
        last_rows,
        parents,
        before_last,
        body=follow,
        num_scan_inputs=2,
        scan_input_directions=[1, 1],
        scan_output_directions=[1, 1],
    )
    behind = op.Where(written, last_tokens, PAD)
    by_step = op.Where(before_last, op.GatherElements(chosen_tokens, rows, axis=2), behind)
    tokens = op.Transpose(by_step, perm=[1, 2, 0])
    return tokens, writers, written


@script(default_opset=op)
def check(step_log_probs: Floats) -> Floats:
    """NaN if a candidate's log probability is."""
    total = op.ReduceSum(step_log_probs, keepdims=0)
    return total


@script(default_opset=op)
def keep_attention(alignments: Floats, size: Ints) -> Floats:
    """The attention of one step, ``[sentences, size, src_len]``, also of the first one, which has one row."""
    attention = op.Expand(alignments, op.Concat([1], size, [1], axis=0))
    return attention


@script(default_opset=op)
def trace_attention(attention: Floats, writers: Ints, written: Bools) -> Floats:
    """The alignments ``[sentences, returned, longest, src_len]`` from ``[steps, sentences, size, src_len]``."""
    steps = op.Slice(attention, [0], op.Shape(writers, start=0, end=1), [0])
    chosen = op.GatherND(steps, op.Unsqueeze(writers, [3]), batch_dims=2)
    by_step = op.Where(op.Unsqueeze(written, [3]), chosen, 0.0)
    alignments = op.Transpose(by_step, perm=[1, 2, 0, 3])
    return alignments
