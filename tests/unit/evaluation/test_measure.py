"""One system on a test set."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import sacrebleu
import torch

from softsearch.data.corpora.base import TextForm
from softsearch.evaluation.inference import TorchState, TorchStepFunction, evaluate
from softsearch.evaluation.measure import Evaluator
from softsearch.evaluation.metrics import for_text, report_metrics
from softsearch.evaluation.schema import SystemReport
from softsearch.evaluation.search_curve import search_curve
from softsearch.evaluation.systems import LabSystem
from softsearch.evaluation.test_set import HeldOutText
from softsearch.runtime.glossary import Glossary
from softsearch.runtime.stages.terms import TermStage
from softsearch.search.beam import BeamSearch
from softsearch.search.ensemble import AVERAGES, Ensemble
from softsearch.search.exact import ExactSearch
from softsearch.search.forced_decoding import score_pairs
from softsearch.search.greedy import Greedy
from softsearch.search.interface import Hypothesis, SearchStrategy, StepFunction
from softsearch.search.shortlist import Shortlist, ShortlistStep
from softsearch.testing.models import TGT_VOCAB, small_model
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import UNK
from tests.support.default_metrics import EVALUATED
from tests.unit.evaluation.systems import TOKENIZER, system_of

SOURCES = ["a b c", "a x b", "c d e f g h i", "d", "e f"]
REFERENCES = ["A b c", "b c d e", "c d z", "d", "f g h i j"]
GREEDY = Greedy(max_length_factor=1.0, max_length_offset=4)
EXACT = ExactSearch(beam=3, max_length_offset=4)
BEAM = BeamSearch(beam=3, length_penalty=0.5, max_length_offset=4)


def measure(
    one: LabSystem, strategy: SearchStrategy, test_set: HeldOutText, dictionary: dict[str, str] | None = None
) -> tuple[SystemReport, list[Hypothesis], list[str]]:
    return evaluator(test_set, dictionary).measure(one, strategy, "in words")[:3]


def evaluator(test_set: HeldOutText, dictionary: dict[str, str] | None = None) -> Evaluator:
    metrics = for_text(EVALUATED, test_set.text_form, test_set.tgt_lang)
    return Evaluator(text=test_set, metrics=metrics, dictionary=dictionary)


def test_translations_have_the_terms_of_a_glossary_or_are_counted() -> None:
    glossary = Glossary([("b", "i j"), ("d", "h"), ("f", "ß")])  # the vocabulary lacks ß
    with_terms = replace(evaluator(text("lc_tok")), terms=TermStage(glossary=glossary))
    report, hypotheses, warnings, _ = with_terms.measure(system(), BEAM, "in words")
    b, d = report.hypotheses[0], report.hypotheses[3]
    assert "i j" in b
    assert "h" in d.split()
    assert "one: 2 translations lack a term of the glossary" in warnings
    plain, without, _ = measure(system(), BEAM, text("lc_tok"))
    assert hypotheses[4] == without[4]  # of a source without terms that can be written, to the last bit
    assert plain.hypotheses[0] != b


def text(form: TextForm) -> HeldOutText:
    return HeldOutText("t", SOURCES, REFERENCES, form, "en", "de")


def system(step_fn: StepFunction | None = None) -> LabSystem:
    return system_of(TorchStepFunction(small_model("rnnsearch", seed=4)) if step_fn is None else step_fn)


def test_it_says_what_evaluation_says_and_more() -> None:
    one = system()
    report, _, _ = measure(one, GREEDY, text("plain"))
    assert isinstance(one.step_fn, TorchStepFunction)
    hypotheses, scores = evaluate(one.step_fn.model, one.tokenizers, GREEDY, text("plain"), EVALUATED)
    assert report.hypotheses == hypotheses
    assert report.nll == pytest.approx(scores.values["loss"])
    for name in ("bleu", "chrf", "ter", "exact_match"):
        assert report.scores[name].value == pytest.approx(scores.values[name])
    ours = report_metrics(report, text("plain"), EVALUATED)
    assert ours.values == pytest.approx(scores.values)
    assert ours[1:] == scores[1:]
    assert sum(r.sentences for r in report.by_length) == len(SOURCES) == len(report.sentence_scores)
    assert report.sentences_per_second > 0 < report.tokens_per_second
    assert report.search == "in words"


def test_plain_text_is_scored_lower_cased_and_tokenised_too() -> None:
    report, _, _ = measure(system(), GREEDY, text("plain"))
    by_hand = [
        [" ".join(sacrebleu.metrics.BLEU(tokenize="13a").tokenizer(line.lower()).split()) for line in side]
        for side in (report.hypotheses, REFERENCES)
    ]
    expected = sacrebleu.corpus_bleu(by_hand[0], [by_hand[1]], tokenize="none", force=True).score
    assert report.scores["bleu_lc"].value == pytest.approx(expected)
    assert "case:lc" in report.scores["bleu_lc"].signature
    assert "bleu_lc" not in measure(system(), GREEDY, text("lc_tok"))[0].scores


def test_sentences_without_unknown_words_are_those_of_both_sides() -> None:
    # A is unknown in the first reference, x in the second source and z in the third reference.
    assert measure(system(), GREEDY, text("lc_tok"))[0].no_unk_sentences == 2


@pytest.mark.parametrize("search", [GREEDY, BEAM])
def test_sentences_without_unknown_words_are_translated_without_unknown_words(search: Greedy | BeamSearch) -> None:
    # Bahdanau et al. 2015, table 1: "We disallowed the models to generate [UNK] tokens when only the sentences having
    # no unknown words were evaluated (last column)".
    model = small_model("rnnsearch", seed=4)
    with torch.no_grad():
        model.decoder.get_parameter("output_projection.bias")[UNK] += 3
    one = system(TorchStepFunction(model))
    found = replace(search, banned=(UNK,))(one.step_fn, [TOKENIZER.encode(line) for line in SOURCES[3:]])
    texts = [TOKENIZER.decode(n_best[0].tokens) for n_best in found]
    references = ["A", "b c d e", "z", *texts]
    report, _, _ = measure(one, search, HeldOutText("t", SOURCES, references, "lc_tok", "en", "de"))
    assert all("\u2047" in hypothesis for hypothesis in report.hypotheses)
    expected = sacrebleu.corpus_bleu(texts, [references[3:]], tokenize="none", force=True).score
    assert report.scores["bleu_no_unk"].value == pytest.approx(expected)
    free = sacrebleu.corpus_bleu(report.hypotheses[3:], [references[3:]], tokenize="none", force=True).score
    assert expected > free
    assert report.no_unk_sentences == 2


def test_subwords_that_wrote_no_unknown_word_are_not_translated_again() -> None:
    class Counting(TorchStepFunction):
        started = 0

        def start(self, src: Sequence[Sequence[int]]) -> TorchState:
            self.started += len(src)
            return super().start(src)

    characters = train_tokenizer(["abcdefghijkl"] * 3, kind="char", vocab_size=TGT_VOCAB)
    model = small_model("rnnsearch", seed=4)
    for bias, again in ((-9.0, 0), (9.0, 4)):
        with torch.no_grad():
            model.decoder.get_parameter("output_projection.bias")[UNK] = bias
        step_fn = Counting(model)
        one = replace(system(step_fn), tokenizers=(characters, characters))
        test_set = HeldOutText("t", ["a", "b", "x", "c", "a b"], ["a", "b", "c", "b", "c"], "lc_tok", "en", "de")
        report, hypotheses, _ = measure(one, GREEDY, test_set)
        assert "bleu_no_unk" in report.scores
        assert any(UNK in hypothesis.tokens for hypothesis in hypotheses) == (again > 0)
        assert step_fn.started == 2 * len(SOURCES) + again  # translated and scored


def test_where_all_words_are_known_there_is_no_such_column() -> None:
    known = HeldOutText("t", ["a b"], ["c d"], "lc_tok", "en", "de")
    report, _, _ = measure(system(), GREEDY, known)
    assert "bleu_no_unk" not in report.scores
    assert report.no_unk_sentences is None


def test_any_step_function_is_scored_as_a_model_is() -> None:
    one = system()
    alone, _, _ = measure(one, GREEDY, text("plain"))
    twins = system(Ensemble([one.step_fn, one.step_fn]))
    both, _, _ = measure(twins, GREEDY, text("plain"))
    assert both.hypotheses == alone.hypotheses
    assert both.nll == pytest.approx(alone.nll, rel=1e-5)


def test_a_curve_of_searches() -> None:
    one, plain = system(), text("lc_tok")
    report, _, _, resampled = evaluator(plain).measure(one, BEAM, "beam 3")
    searches = {"greedy": Greedy(max_length_offset=4), "beam 1": replace(BEAM, beam=1), "beam 3": BEAM, "exact": EXACT}
    points, warnings = search_curve(evaluator(plain), one, searches, BEAM, resampled["bleu"])
    assert warnings == []
    assert points[2].length_ratio == report.length_ratio
    assert [point.p_value is None for point in points] == [False, False, True, False]
    assert [point.name for point in points] == ["greedy", "beam 1", "beam 3", "exact"]
    assert points[0].quality == points[1].quality
    assert points[2].quality == pytest.approx(report.scores["bleu"].value)
    assert points[3].search_errors == 0
    assert points[3].mean_log_prob >= max(point.mean_log_prob for point in points)
    assert np.isclose(points[0].mean_log_prob, points[1].mean_log_prob)


def loss(one: LabSystem, test_set: HeldOutText) -> tuple[float | None, list[str]]:
    report, _, warnings = measure(one, GREEDY, test_set)
    return report.nll, [warning for warning in warnings if "-log p" in warning]


def test_the_loss_is_that_of_the_shortlist() -> None:
    model, everything = small_model("rnnsearch", seed=4), np.arange(4, TGT_VOCAB)
    no_translations = np.full((TGT_VOCAB, 1), -1)
    known = HeldOutText("t", ["a b c", "d"], ["b c", "a"], "lc_tok", "en", "de")
    frequent = np.array(TOKENIZER.encode("a b c"))

    def measured(shortlist: Shortlist | None, test_set: HeldOutText) -> tuple[float | None, list[str]]:
        return loss(system(TorchStepFunction(model, shortlist)), test_set)

    restricted, warnings = measured(Shortlist(frequent, no_translations), known)
    pairs = score_pairs(
        ShortlistStep(TorchStepFunction(model), Shortlist(frequent, no_translations)),
        [TOKENIZER.encode(line) for line in known.sources],
        [TOKENIZER.encode(line) for line in known.references],
        batch_tokens=100,
    )
    assert restricted == pytest.approx(-sum(pair.log_prob for pair in pairs) / 5, rel=1e-5)
    assert warnings == []
    full, _ = measured(None, known)
    assert full is not None
    assert restricted is not None
    assert restricted < full - 0.1  # all probability goes to four words
    missing, (warning,) = measured(Shortlist(everything[:-1], no_translations), text("lc_tok"))  # m, unknown words
    assert missing is None
    assert warning.startswith("one has no -log p of a reference token: it is infinite, because a word of 2 of 5")


def test_scores_that_are_no_probabilities_have_no_loss() -> None:
    members = [TorchStepFunction(small_model("rnnsearch", seed=seed)) for seed in (4, 5)]
    for average in AVERAGES:
        nll, warnings = loss(system(Ensemble(members, None, average)), text("lc_tok"))
        missing = average == "unnormalised_log_probs"
        assert (nll is None) == missing
        assert [warning.partition(": ")[2] for warning in warnings] == [
            "the sums of its models' scores are not probabilities"
        ] * missing


def test_a_curve_replaces_unknown_words_as_the_report_does() -> None:
    model = small_model("rnnsearch", seed=4)
    with torch.no_grad():
        model.decoder.get_parameter("output_projection.bias")[UNK] += 3
    one = system(TorchStepFunction(model))
    test_set, dictionary = text("lc_tok"), dict.fromkeys("abcdefghi", "x")
    beam = replace(BEAM, min_length_offset=5)
    references = measure(one, beam, test_set, dictionary)[0].hypotheses
    test_set = replace(test_set, references=references)
    report, _, _ = measure(one, beam, test_set, dictionary)
    searches = {"beam": beam, "greedy": Greedy(min_length_offset=5)}
    replaced, left = (search_curve(evaluator(test_set, words), one, searches, beam)[0] for words in (dictionary, None))
    assert replaced[0].quality == pytest.approx(report.scores["bleu"].value)
    assert all(ours.quality > theirs.quality for ours, theirs in zip(replaced, left, strict=True))


def test_exact_search_that_gives_up_is_no_proof() -> None:
    one, plain = system(), text("lc_tok")
    search = ExactSearch(beam=3, max_length_offset=4, max_nodes=1)
    _, warnings = search_curve(evaluator(plain), one, {"exact": search}, BEAM)
    assert warnings[0].startswith("one: exact search did not finish for ")
    assert " of 5 sentences" in warnings[0]


def test_the_test_set_is_tokenised_once() -> None:
    class Counting(SentencePieceTokenizer):
        lines = 0

        def encode(self, text: str) -> list[int]:
            self.lines += text in (*SOURCES, *REFERENCES)  # not the tags that it is asked for
            return super().encode(text)

    tokenizer, plain = Counting(TOKENIZER.model), text("plain")
    one = replace(system(), tokenizers=(tokenizer, tokenizer))
    both = evaluator(plain)
    both.measure(one, GREEDY, "greedy")
    search_curve(both, one, {"greedy": GREEDY}, BEAM)
    assert tokenizer.lines == len(SOURCES) + len(REFERENCES)
