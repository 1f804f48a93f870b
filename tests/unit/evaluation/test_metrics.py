"""Scores are sacreBLEU's, and the signatures say how they came about."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import sacrebleu
from numpy.typing import ArrayLike
from omegaconf import DictConfig, OmegaConf
from sacrebleu.tokenizers import tokenizer_spm

from softsearch.app.config.resolvers import mode_of
from softsearch.app.results import build_metrics
from softsearch.data.corpora.base import TextForm
from softsearch.errors import ConfigError
from softsearch.evaluation import metrics
from softsearch.evaluation.metrics import BLEU, TER, ChrF, ExactMatch, LengthRatio, Metric, facts, for_text
from softsearch.evaluation.text_checks import unsegmented, without_scores
from softsearch.text.tokenizer import train_tokenizer
from tests.support.default_metrics import corpus_scores

HYPOTHESES = ["A dog runs, quickly!", "two cats sit on the red mat .", "the house"]
REFERENCES = ["A dog runs quickly!", "two cats sit on the mat .", "the house"]


def test_plain_text_is_tokenised_by_sacrebleu() -> None:
    scores = corpus_scores(HYPOTHESES, REFERENCES, text_form="plain", tgt_lang="de")
    assert scores.values["bleu"] == pytest.approx(sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score)
    assert scores.values["chrf"] == pytest.approx(sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score)
    assert scores.values["ter"] == pytest.approx(sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score)
    assert "tok:13a" in scores.signatures["bleu"]
    assert set(scores.signatures) == {"bleu", "chrf", "ter"}


def test_tokenised_text_is_taken_as_it_is() -> None:
    scores = corpus_scores(HYPOTHESES, REFERENCES, text_form="lc_tok", tgt_lang="de")
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="none", force=True).score
    assert scores.values["bleu"] == pytest.approx(expected)
    assert scores.values["bleu"] != pytest.approx(sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score)
    assert "tok:none" in scores.signatures["bleu"]


@pytest.mark.parametrize(
    ("lang", "form", "tokenizer", "ter", "signature"),
    [
        ("zh-Hans", "plain", "zh", 100 / 6, "tok:tercom|norm:yes|punct:yes|asian:yes"),  # one of six characters
        ("cmn_Hant", "plain", "zh", 100 / 6, "asian:yes"),
        ("ja", "plain", "char", 100 / 6, "tok:char|norm:no|punct:yes|asian:no"),
        ("tha", "plain", "char", 100 / 6, "tok:char"),
        ("dz", "plain", "char", 100 / 6, "tok:char"),  # as every language in such a script
        ("kac_Mymr", "plain", "char", 100 / 6, "tok:char"),
        ("fr", "plain", "13a", 100, "tok:tercom|norm:no"),  # one word
        ("ja-Latn", "plain", "13a", 100, "tok:tercom|norm:no"),
        ("zh", "lc_tok", "none", 100, "tok:tercom|norm:no"),
    ],
)
def test_languages_without_spaces_are_split(
    lang: str, form: TextForm, tokenizer: str, ter: float, signature: str
) -> None:
    scores = corpus_scores(["我有一只猫。"], ["我有一只狗。"], text_form=form, tgt_lang=lang)
    assert f"tok:{tokenizer}" in scores.signatures["bleu"]
    assert scores.values["ter"] == pytest.approx(ter)
    assert signature in scores.signatures["ter"]


@pytest.mark.parametrize(
    ("lang", "hypothesis", "reference", "edits"),
    [
        ("th", "ฉันไปร้านค้าใหญ่ในกรุงเทพ", "ฉันไปร้านใหญ่ในกรุงเทพ", 3),
        ("th", "ไป ร้าน", "ไปร้าน", 0),  # spaces do not count
        ("lo", "ຂ້ອຍໄປຕະຫຼາດ", "ຂ້ອຍໄປຕະຫລາດ", 1),
        ("km", "ខ្ញុំទៅផ្សារ", "ខ្ញុំទៅផ្ទះ", 3),
        ("my", "ကျွန်တော်သွားသည်", "ကျွန်တော်သွားမည်", 1),
        ("bo", "ང་འགྲོ་གི་ཡིན།", "ང་འགྲོ་གི་མིན།", 1),
        ("ja", "ねこがいる", "いぬがいる", 2),  # tercom takes hiragana for one word
    ],
)
def test_ter_counts_characters_as_bleu_does(lang: str, hypothesis: str, reference: str, edits: int) -> None:
    metric = for_text({"ter": TER()}, "plain", lang)["ter"]
    characters = len(reference.replace(" ", ""))
    assert metric.corpus_score([hypothesis], [reference]) == pytest.approx(100 * edits / characters)
    assert metric.sentence_score(metric.table([hypothesis], [reference])[0]) == pytest.approx(100 * edits / characters)


@pytest.mark.parametrize(
    ("line", "lang", "form", "problem"),
    [
        ("我有一只猫。", "", "plain", "the target language is '', but its text has no spaces"),
        ("แมวนั่งอยู่บนเสื่อ", "xx", "plain", "the target language is 'xx', but"),
        ("我有一只猫。", "zh_TW", "plain", None),
        ("我有一只猫。", "", "lc_tok", None),
        ("我 有 一 只 猫 。", "", "plain", None),
        ("Donaudampfschifffahrtsgesellschaft", "", "plain", None),
        ("", "", "plain", None),
    ],
)
def test_text_without_spaces_in_an_unknown_language(line: str, lang: str, form: TextForm, problem: str | None) -> None:
    """Fault: text without spaces in a language for which BLEU has no tokenizer.

    Effect: a warning, because BLEU would take each sentence for one word.
    """
    found = unsegmented([line] * 3, text_form=form, tgt_lang=lang)
    assert found is None if problem is None else str(found).startswith(problem)


@pytest.mark.parametrize(
    ("references", "lang", "is_told"),
    [
        (["eins zwei drei", "ja ."], "de", True),
        (["eins zwei drei", "ja , ja ."], "de", False),
        (["三四五", "六"], "zh", True),
        (["", ""], "de", True),
    ],
)
def test_references_without_four_words_have_no_bleu(references: list[str], lang: str, is_told: bool) -> None:
    metrics = for_text({"bleu": BLEU(), "chrf": ChrF(), "exact_match": ExactMatch()}, "plain", lang)
    told = ["no reference has four words, so BLEU is 0 for any translation"]
    assert without_scores(metrics, references) == told * is_told
    assert (metrics["bleu"].corpus_score(references, references) == 0) == is_told


def test_bounds() -> None:
    perfect = corpus_scores(REFERENCES, REFERENCES, text_form="plain", tgt_lang="en").values
    assert perfect == pytest.approx({"bleu": 100, "chrf": 100, "ter": 0, "exact_match": 1})
    nothing = corpus_scores(["", "", ""], REFERENCES, text_form="plain", tgt_lang="en").values
    assert nothing == pytest.approx({"bleu": 0, "chrf": 0, "ter": 100, "exact_match": 0})


def test_exact_match_is_a_share_of_lines() -> None:
    values = corpus_scores(HYPOTHESES, REFERENCES, text_form="plain", tgt_lang="en").values
    assert values["exact_match"] == pytest.approx(1 / 3)
    assert ExactMatch().corpus_score(["a b", "ü", "x y", "x"], [" a  b\u00a0", "u\u0308", "xy", "X"]) == 1 / 2


def test_sides_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 hypotheses and 3 references"):
        corpus_scores(HYPOTHESES[:2], REFERENCES, text_form="plain", tgt_lang="en")


def test_options_are_sacrebleus_and_in_signature_and_title() -> None:
    metrics: dict[str, Metric] = {"a": BLEU(tokenize="intl"), "b": BLEU(lowercase=True), "c": ChrF(word_order=2)}
    bound = for_text(metrics, "plain", "zh")
    assert [fact.title for fact in facts(bound).values()] == ["BLEU, intl", "BLEU, lower-cased, tokenised", "chrF++"]
    assert [bound["a"].signature.split("|")[3], bound["b"].signature.split("|")[1]] == ["tok:intl", "case:lc"]
    assert bound["c"].corpus_score(HYPOTHESES, REFERENCES) == pytest.approx(
        sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2).score
    )
    assert list(for_text(metrics, "lc_tok", "de")) == ["a", "c"]  # such text is lower-cased already
    with pytest.raises(ConfigError, match="tokenize of BLEU is 'word', expected null or one of none"):
        BLEU(tokenize="word")


def test_spbleu_reads_the_file_of_sacrebleu_or_says_where_it_belongs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "SACREBLEU_DIR", str(tmp_path))
    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(tmp_path))
    address = "file:///nowhere/pieces"
    monkeypatch.setitem(tokenizer_spm.SPM_MODELS["flores200"], "url", address)
    file = tmp_path / "models" / "pieces"
    for content, problem in ((None, "urlopen error"), (b"<html>", "could not parse")):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ConfigError, match=rf"tokenizer flores200 needs {file} \(.*{problem}.*download {address} "):
            BLEU(tokenize="flores200")
    file.write_bytes(train_tokenizer(REFERENCES * 9, kind="char", vocab_size=40).model)
    found = for_text({"spbleu": BLEU(tokenize="flores200")}, "plain", "zh")["spbleu"]
    assert found.corpus_score(HYPOTHESES, REFERENCES) == pytest.approx(
        sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="flores200").score
    )
    assert [found.title, found.signature.split("|")[3]] == ["spBLEU", "tok:flores200"]


@pytest.mark.parametrize("language", ["ja", "ko"])
def test_without_mecab_it_says_what_to_install(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"sacrebleu.tokenizers.tokenizer_{language}_mecab.MeCab", None)
    with pytest.raises(ConfigError, match=rf"{language}-mecab needs MeCab .* pip install 'sacrebleu\[{language}\]'$"):
        BLEU(tokenize=f"{language}-mecab")


@pytest.mark.parametrize(
    ("form", "language", "expected", "tokenizer"),
    [("plain", "en", 6 / 8, "13a"), ("lc_tok", "en", 4 / 6, "none"), ("plain", "zh", 14 / 23, "zh")],
)
def test_lengths_are_counted_as_bleu_does(form: TextForm, language: str, expected: float, tokenizer: str) -> None:
    hypotheses, references = ["a b, c", "我有"], ["a b, c!", "c d e 我有一"]
    ratio = LengthRatio().for_text(form, language)
    own = BLEU().for_text(form, language)
    assert own is not None
    translated, written = own.table(hypotheses, references).sum(axis=0)[:2]
    assert ratio.corpus_score(hypotheses, references) == translated / written
    assert ratio.signature == f"tok:{tokenizer}|version:{sacrebleu.__version__}"
    assert ratio.corpus_score(["a"], [""]) == 0


def test_what_has_no_direction_decides_nothing() -> None:
    def group(*names: str) -> DictConfig:
        targets = {"length": "LengthRatio", "bleu": "BLEU"}
        nodes = {name: {"_target_": f"softsearch.evaluation.metrics.{targets[name]}"} for name in names}
        return OmegaConf.create(nodes)

    assert list(build_metrics(group("bleu", "length"))) == ["bleu", "length"]
    with pytest.raises(
        ConfigError, match=r"metric\.length cannot be the first metric, .* write metric='\[bleu,length\]'"
    ):
        build_metrics(group("length", "bleu"))
    config = OmegaConf.create({"metric": group("bleu", "length")})
    assert mode_of("val/bleu", _root_=config) == "max"
    with pytest.raises(ConfigError, match="length cannot be monitored"):
        mode_of("val/length", _root_=config)


def test_a_metric_may_need_the_sources() -> None:
    class Copied(ExactMatch):
        needs_sources = True

        def statistics(
            self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] = ()
        ) -> ArrayLike:
            return super().statistics(hypotheses, sources)

    assert Copied().corpus_score(["a", "b"], ["x", "y"], ["<2de> a", "c"]) == 0.5


@pytest.mark.parametrize("metric", [BLEU(), ChrF(), TER(), ExactMatch()])
def test_sentences_are_scored_one_by_one(metric: Metric) -> None:
    table = metric.table([*HYPOTHESES, ""], [*REFERENCES, "a"])
    found = [metric.sentence_score(row) for row in table]
    if isinstance(metric, BLEU):
        assert found[0] == pytest.approx(sacrebleu.sentence_bleu(HYPOTHESES[0], [REFERENCES[0]]).score)
    assert found[2:] == pytest.approx([metric.limits[0], 100] if isinstance(metric, TER) else [metric.limits[1], 0])
    assert metric.limits[0] < found[1] < metric.limits[1] or isinstance(metric, ExactMatch)


def test_statistics_that_do_not_fit_are_refused() -> None:
    class Flat(ExactMatch):
        def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
            return [1.0] * len(references)

    class Infinite(ExactMatch):
        def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> list[list[float]]:
            return [[float("nan")] for _ in references]

    for metric in (Flat(), Infinite()):
        with pytest.raises(ConfigError, match=rf"metric {type(metric).__name__}: statistics\(\) returned shape \[3"):
            metric.corpus_score(HYPOTHESES, REFERENCES)
