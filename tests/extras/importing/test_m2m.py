"""An imported M2M-100 or NLLB-200 is what ``transformers`` runs: logits, beam search and token ids."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer

from softsearch.app.config.build import rebuild_model
from softsearch.app.config.composition import composed
from softsearch.app.config.options import Train
from softsearch.app.config.validation import build, read_options
from softsearch.app.train.init import tokenizer_maker
from softsearch.data.corpora.spellout import Spellout
from softsearch.data.dataset import pad
from softsearch.data.existing_tokenizers import ExistingTokenizers
from softsearch.errors import ConfigError
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.export.bundle import export_bundle
from softsearch.export.tokenizer_json import tokenizer_files
from softsearch.extras.formats.argos import export_argos
from softsearch.extras.formats.ctranslate2 import export_ctranslate2
from softsearch.extras.importing.command import read
from softsearch.extras.importing.config_json import Config, read_object
from softsearch.extras.importing.m2m_vocabulary import read_languages
from softsearch.runtime.cli import main
from softsearch.runtime.translator import Translator
from softsearch.search.beam import BeamSearch
from softsearch.text.languages import languages_of
from softsearch.text.vocabulary import BOS, EOS, PAD, UNK, language_tag, source_tag
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents, read_contents
from tests.support.browser import complaints, open_page, texts, view, violations
from tests.support.huggingface import m2m_folder
from tests.support.serving import serving

CASES: dict[str, dict[str, Any]] = {
    "nllb": {},
    "legacy": {"legacy": True, "seed": 3, "encoder_layers": 1, "decoder_layers": 2},
    "m2m": {"is_m2m": True, "seed": 5, "activation_function": "gelu", "scale_embedding": False},
    "untied": {"tie_word_embeddings": False, "seed": 7, "kind": "unigram", "is_m2m": True},
}
LIMIT = 40
ODD = [
    *("\u00a0", "\u200b", "\u200d", "\u2060", "\ufeff", "\t", "\r", "\u3000", "\u2028", "\u00ad", "\u2581", "  "),
    *("\0", "\x1f", "\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "e\u0301", "a\u0308\u0301", "\u0301", "\ufb01"),
    *("\uff21", "\uff76\uff9e", "\u00bd", "\u0915\u094d\u0937", "\u0e44\u0e33", "\uac00", "\u4e2d\u6587"),
    *("\ue000", "<s>", "</s>", "<pad>", "<unk>", "<mask>", "eng_Latn", "__en__", "<2xx>", "<from:xx>", "<0x0A>"),
    *("\u0645\u0631", "\u2047", ">>fra<<"),
]  # fmt: skip


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    pytest.importorskip("transformers")
    source = Spellout(train_size=400, val_size=10, test_size=10)
    src, tgt = source.files(tmp_path_factory.mktemp("text"))["train"]
    return src.read_text().splitlines() + tgt.read_text().splitlines()


class Both:
    """A model of ``transformers``, and the run that it became."""

    def __init__(self, folder: Path, text: Sequence[str], **options: Any) -> None:
        self.theirs, self.tokenizer = m2m_folder(folder, text, **options)
        self.run = folder.with_suffix(".run")
        read(folder).write(self.run)
        self.contents: CheckpointContents = read_contents(self.run / "checkpoints" / "best.ckpt")
        self.ours = rebuild_model(self.contents)
        texts = read_object(folder / "tokenizer_config.json")
        self.vocabulary = read_languages(folder, texts, Config(folder / "config.json").positive_int("vocab_size"))
        self.rows, self.codes = self.vocabulary.rows, self.vocabulary.codes

    def ids(self, line: str, src: str, tgt: str) -> list[int]:
        return self.contents.tokenizers[0].encode(f"{language_tag(tgt)} {source_tag(src)} {line}")

    def their_language(self, code: str) -> int:
        return self.vocabulary.languages[code]

    def their_source(self, line: str, src: str) -> list[int]:
        self.tokenizer.src_lang = src
        return list(self.tokenizer(line).input_ids)


@pytest.fixture(scope="module", params=CASES)
def both(request: pytest.FixtureRequest, text: list[str], tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(tmp_path_factory.mktemp("m2m") / "model", text, **CASES[request.param])


def test_logits_are_equal_in_every_pair_of_languages(both: Both, text: list[str]) -> None:
    both.ours.double(), both.theirs.double()
    lines = [*zip(text[:12], text[400:412], strict=True)]
    for src, tgt in [(a, b) for a in both.codes[:3] for b in both.codes[-3:]]:
        src_tokens = pad([np.array(both.ids(line, src, tgt)) for line, _ in lines])
        targets = [both.contents.tokenizers[1].encode(line)[:30] for _, line in lines]
        tgt_tokens = pad([np.array(ids) for ids in targets], bos=True)
        batch = both.tokenizer.pad(
            {"input_ids": [both.their_source(line, src) for line, _ in lines]}, return_tensors="pt"
        )
        eos, begin = both.theirs.config.eos_token_id, both.their_language(tgt)
        their_tgt = torch.tensor(both.rows)[torch.cat([tgt_tokens[:, :1], tgt_tokens], dim=1)]
        their_tgt[:, 0], their_tgt[:, 1] = eos, begin
        with torch.no_grad():
            ours = both.ours(src_tokens, tgt_tokens)
            theirs = both.theirs(**batch, decoder_input_ids=their_tgt).logits[:, 1:]
        kept = [token for token in range(len(both.rows)) if token not in both.vocabulary.never]
        real = tgt_tokens != PAD
        expected = theirs[real][:, both.rows][:, kept]
        torch.testing.assert_close(ours[real][:, kept], expected, rtol=0, atol=1e-5)  # of sinusoids in float32
    both.ours.float(), both.theirs.float()


def test_what_a_search_has_written_is_read_as_it_was(both: Both, text: list[str]) -> None:
    src_tokens = pad([np.array(both.ids(text[0], both.codes[0], both.codes[-1]))])
    written, steps = [BOS], []
    with torch.no_grad():
        state = both.ours.encode(src_tokens)
        for _ in range(5):  # the language first
            logits, _, state = both.ours.decoder.step(torch.tensor(written[-1:]), state)
            steps.append(logits)
            written.append(int(logits.index_fill(1, torch.tensor([PAD, EOS]), -torch.inf).argmax()))
        found = both.ours(src_tokens, torch.tensor([written[:-1]]))
    torch.testing.assert_close(found[0, 1:], torch.cat(steps[1:]), rtol=0, atol=1e-5)


def translated(both: Both, search: Any, lines: Sequence[str], src: str, tgt: str) -> list[list[int]]:
    return [
        [both.rows[token] for token in best.tokens] for (best, *_) in search([both.ids(li, src, tgt) for li in lines])
    ]


def generated(both: Both, lines: Sequence[str], src: str, tgt: str, **options: Any) -> list[list[int]]:
    batch = both.tokenizer.pad({"input_ids": [both.their_source(line, src) for line in lines]}, return_tensors="pt")
    begin = both.their_language(tgt)
    settings = {"num_beams": 5, "early_stopping": True, "max_new_tokens": LIMIT, **options}
    found = both.theirs.generate(**batch, forced_bos_token_id=begin, **settings).tolist()
    eos = both.theirs.config.eos_token_id
    return [row[1 : (*row, eos).index(eos, 1)] for row in found]


def check_same(ours: list[list[int]], theirs: list[list[int]]) -> None:
    """At the limit, ours returns what has ended before what has not, whatever their scores are."""
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if len(a) == LIMIT or len(b) < LIMIT]
    assert len(pairs) > len(ours) * 0.8
    assert sum(len(b) < LIMIT for _, b in pairs) > 5
    assert [a for a, _ in pairs] == [b for _, b in pairs]


def test_a_beam_finds_the_same_translations(both: Both, text: list[str]) -> None:
    beam = BeamSearch(beam=5, max_length_factor=0.0, max_length_offset=LIMIT)
    src, tgt = both.codes[0], both.codes[-1]
    ours = translated(both, lambda ids: beam(TorchStepFunction(both.ours), ids), text[:25], src, tgt)
    assert {tokens[0] for tokens in ours} == {both.their_language(tgt)}
    check_same(ours, generated(both, text[:25], src, tgt))


def test_lines_have_the_same_ids_in_every_language(both: Both, text: list[str]) -> None:
    odd = ["unknown ☃☃", "ß and ü", "é", "one, two; three!"]
    for number, line in enumerate([*text, *odd]):
        src = both.codes[number % len(both.codes)]
        (_, language, *ids) = both.ids(line, src, both.codes[0])
        found, expected = [both.rows[token] for token in ids], both.their_source(line, src)
        eos, begin = both.theirs.config.eos_token_id, both.rows[language]
        is_last = getattr(both.tokenizer, "legacy_behaviour", False)
        assert ([*found, eos, begin] if is_last else [begin, *found, eos]) == expected, line


def test_odd_text_has_the_ids_of_the_published_tokenizer(both: Both, text: list[str]) -> None:
    """That of SentencePiece, with names of special tokens as text (``split_special_tokens``)."""
    published = SentencePieceProcessor(model_proto=both.vocabulary.base)
    unknown = both.vocabulary.special[1]
    for number, sign in enumerate(ODD * 5):
        words = text[number * 3].split(" ")
        place = number % len(words)
        glued = " ".join([*words[:place], f"{words[place][:2]}{sign}{words[place][2:]}", *words[place + 1 :]])
        for line in (glued, f"{sign}{text[number]}", f"{text[number]}{sign}", f" {sign} ", f"one {sign} {sign}two"):
            expected = [token + 1 if token else unknown for token in published.encode(line)]
            _, _, *ids = both.ids(line, both.codes[0], both.codes[1])
            assert [both.rows[token] for token in ids] == expected, line
            if not hasattr(both.tokenizer, "backend_tokenizer"):
                assert both.tokenizer(line, split_special_tokens=True).input_ids[1:-1] == expected, line


def test_ids_are_decoded_as_by_transformers(both: Both, text: list[str]) -> None:
    """Without ``clean_up_tokenization_spaces``, which removes spaces before punctuation."""
    tokenizer = both.contents.tokenizers[1]
    language = both.contents.tokenizers[0].names().index(language_tag(both.codes[1]))
    written = [token for token in range(UNK + 3, len(both.vocabulary.words)) if token not in both.vocabulary.never]
    rng = np.random.default_rng(0)
    cases = [rng.choice(written, 12).tolist() for _ in range(100)]
    for ids in (*cases, *map(tokenizer.encode, (*text[::40], "a , b . c 's"))):
        shown = [both.rows[token] for token in ids]
        theirs = both.tokenizer.decode(shown, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert tokenizer.decode([language, *ids, EOS]) == theirs.strip(" ") or UNK in ids


@pytest.fixture(scope="module")
def exported(text: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Both, Translator]:
    folder = tmp_path_factory.mktemp("exported")
    both = Both(folder / "model", text, **CASES["legacy"])
    step_fn, search = (
        TorchStepFunction(both.ours.eval()),
        BeamSearch(beam=5, max_length_factor=0.0, max_length_offset=LIMIT),
    )
    facts = {"config": {"data": {"src_lang": "eng_Latn", "tgt_lang": ""}}}
    options: dict[str, Any] = {"search": search, "max_src_tokens": 64, "facts": facts}
    export_bundle(both.ours, step_fn, both.contents.tokenizers, folder / "bundle", **options)
    return both, Translator(folder / "bundle")


@pytest.mark.day
def test_a_bundle_translates_into_the_language_of_the_request(
    exported: tuple[Both, Translator], text: list[str]
) -> None:
    both, translator = exported
    for src, tgt in (("eng_Latn", "deu_Latn"), ("deu_Latn", "fra_Latn")):
        found = translator.translate(text[:20], tgt=tgt, src=None if src == "eng_Latn" else src)
        names = {piece: token for token, piece in enumerate(both.contents.tokenizers[1].names())}
        ids = [[both.rows[names[piece]] for piece in each.tgt_pieces if piece != "</s>"] for each in found]
        check_same(ids, generated(both, text[:20], src, tgt))
        assert not any("<2" in each.text for each in found)
        tagged = [f"{language_tag(tgt)} {source_tag(src)} {line}" for line in text[:20]]
        assert [each.text for each in translator.translate(tagged)] == [each.text for each in found]


@pytest.mark.day
@pytest.mark.usefixtures("page")
def test_the_page_has_languages_by_name(browser: Any, exported: tuple[Both, Translator]) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select, WebDriverWait

    both, translator = exported
    with serving(both.run.with_name("bundle"), "--workers", 1) as served:
        open_page(browser, served.url)
        view(browser, 400)
        wait = WebDriverWait(browser, 60)
        wait.until(lambda _: texts(browser, ".languages option") == ["English", "French", "German"] * 2)
        source, target = (Select(each) for each in browser.find_elements(By.CSS_SELECTOR, ".languages select"))
        chosen = [menu.first_selected_option.text for menu in (source, target)]
        assert chosen == ["English", "German"]
        browser.find_element(By.ID, "source").send_keys("one")
        for name, code in (("German", "deu_Latn"), ("French", "fra_Latn")):
            target.select_by_visible_text(name)
            (best,) = translator.translate(["one"], tgt=code, beam=5, n_best=5)
            found = [each.text or "(empty)" for each in best.n_best]
            wait.until(lambda _, found=found: texts(browser, ".candidate .text") == found)
            shown = "return document.querySelector('.line.target')"
            assert browser.execute_script(f"{shown}.lang") == {"German": "de-Latn", "French": "fr-Latn"}[name]
            assert not any(f"<2{code}>" in text for text in texts(browser, ".line.target"))
        assert violations(browser) == []
        assert complaints(browser, served.url) == []


@pytest.mark.day
def test_scores_are_those_of_a_translation_that_begins_with_its_language(
    exported: tuple[Both, Translator], text: list[str]
) -> None:
    both, translator = exported
    pairs = [(src, tgt) for src, tgt in zip(text[:400], text[400:800], strict=True) if len(tgt) < 25][:5]
    scores = translator.score([src for src, _ in pairs], [tgt for _, tgt in pairs], tgt="fra_Latn")
    eos = both.theirs.config.eos_token_id
    for (src, tgt), score in zip(pairs, scores, strict=True):
        ids = [*(both.rows[token] for token in both.contents.tokenizers[1].encode(tgt)), eos]
        read = torch.tensor([[eos, both.their_language("fra_Latn"), *ids[:-1]]])
        with torch.no_grad():
            theirs = both.theirs(torch.tensor([both.their_source(src, "eng_Latn")]), decoder_input_ids=read)
        log_probs = theirs.logits[0, 1:].log_softmax(-1)[range(len(ids)), ids]
        np.testing.assert_allclose(score.token_log_probs, log_probs, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_a_host_without_sentencepiece_reads_and_writes_the_same(name: str, text: list[str], tmp_path: Path) -> None:
    """``tokenizer.json`` leaves out the language that a translation begins with, as SentencePiece does."""
    both = Both(tmp_path / "model", text, **CASES[name])
    tokenizer = both.contents.tokenizers[0]
    files = tokenizer_files(both.contents.tokenizers)
    converted = Tokenizer.from_str(files["tokenizer.json"].decode())
    line = f"<2{both.codes[1]}> <from:{both.codes[0]}> one two"
    ids = tokenizer.encode(line)
    assert converted.encode(line).ids == [*ids, EOS]
    language = tokenizer.names().index(f"<2{both.codes[1]}>")
    assert converted.decode([language, *ids[2:], EOS]) == tokenizer.decode([language, *ids[2:]]) == "one two"


@pytest.mark.day
def test_a_prefix_stands_behind_the_language(exported: tuple[Both, Translator]) -> None:
    _, translator = exported
    (found,) = translator.translate(["one two"], tgt="deu_Latn", prefixes=["zwei"])
    assert found.tgt_pieces[0] == "<2deu_Latn>"
    assert found.text.startswith("zwei")


@pytest.mark.day
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no target language is given"),
        ({"tgt": "deu"}, "did you mean deu_Latn"),
        ({"tgt": "deu_Latn", "src": "en"}, "eng_Latn"),
    ],
)
def test_a_language_that_is_missing_is_refused(
    exported: tuple[Both, Translator], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        exported[1].translate(["one"], **options)


def test_a_model_cut_to_languages_is_the_whole_one_without_the_other_pieces(
    text: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text of a file keeps its ids, and translations are those of the whole model with the other ids banned."""
    both = Both(tmp_path / "model", text, **CASES["nllb"], languages=("eng_Latn", "deu_Latn", "rus_Cyrl"))
    sources = text[:20]
    (tmp_path / "text").write_text("\n".join(sources))
    words = ["import", str(tmp_path / "model"), "--out", str(tmp_path / "cut"), "--languages", "deu_Latn,eng_Latn"]
    assert main([*words, "--text", str(tmp_path / "text")]) == 0
    printed = capsys.readouterr().out
    assert "reduced from" in printed
    contents = read_contents(tmp_path / "cut" / "checkpoints" / "best.ckpt")
    (_, tokenizer), cut = contents.tokenizers, rebuild_model(contents).eval()
    whole = {piece: token for token, piece in enumerate(both.contents.tokenizers[0].names())}
    rows = [both.rows[whole[piece]] for piece in tokenizer.names()]
    assert len(rows) < len(both.rows) - 10
    assert "<2rus_Cyrl>" not in tokenizer.names()
    ids = [tokenizer.encode(f"<2deu_Latn> <from:eng_Latn> {line}") for line in sources]
    assert [[rows[token] for token in line[1:]] for line in ids] == [
        [both.rows[token] for token in both.ids(line, "eng_Latn", "deu_Latn")[1:]] for line in sources
    ]
    beam = BeamSearch(beam=5, max_length_factor=0.0, max_length_offset=LIMIT)
    found = [[rows[token] for token in best.tokens] for (best,) in beam(TorchStepFunction(cut), ids)]
    others = [[row] for row in range(both.theirs.config.vocab_size) if row not in rows]
    check_same(found, generated(both, sources, "eng_Latn", "deu_Latn", bad_words_ids=others, renormalize_logits=True))


HEADS = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}  # CTranslate2 needs the same number


@pytest.mark.parametrize("case", ["nllb", "m2m"])
def test_ctranslate2_writes_the_same_translations(case: str, text: list[str], tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    both = Both(tmp_path / "model", text, **CASES[case], **HEADS)
    tokenizer = both.contents.tokenizers[0]
    export_ctranslate2(both.ours, TorchStepFunction(both.ours.eval()), both.contents.tokenizers, tmp_path / "ct2")
    translator = ctranslate2.Translator(str(tmp_path / "ct2"))
    names = {piece: token for token, piece in enumerate(tokenizer.names())}
    src, tgt = both.codes[0], both.codes[-1]
    sources = [[f"\u2581{source_tag(src)}", *tokenizer.pieces(tokenizer.encode(line))] for line in text[:40]]
    found = translator.translate_batch(
        sources, target_prefix=[[language_tag(tgt)]] * 40, beam_size=1, max_decoding_length=LIMIT
    )
    ids = [[both.rows[names[piece]] for piece in each.hypotheses[0]] for each in found]
    check_same(ids, generated(both, text[:40], src, tgt, num_beams=1, early_stopping=False))


@pytest.mark.day
def test_ctranslate2_and_argos_refuse_what_they_cannot_do(
    exported: tuple[Both, Translator], text: list[str], tmp_path: Path
) -> None:
    ours = exported[0].ours
    with pytest.raises(ConfigError, match="reads the source's language behind the source"):
        export_ctranslate2(ours, TorchStepFunction(ours), exported[0].contents.tokenizers, tmp_path / "ct2")
    both = Both(tmp_path / "model", text, **CASES["m2m"], **HEADS)
    step_fn, tokenizers = TorchStepFunction(both.ours), both.contents.tokenizers
    with pytest.raises(ConfigError, match="Argos Translate reads no tags of languages"):
        export_argos(both.ours, step_fn, tokenizers, ("en", "de"), tmp_path / "x.argosmodel")


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ((), "write data=parallel .* or data=multilingual data.source_tags=true"),
        (("<2{}>",), "write data=parallel .* or data=multilingual data.source_tags=true"),
        (("<2{}x>", "<from:{}>"), r"no piece for the tag <2{0}x>.* codes of the model: did you mean .*{0}"),
        (("<2{}>", "<from:{}x>"), r"no piece for the tag <from:{0}x>.* codes of the model: did you mean .*{0}"),
    ],
)
def test_training_text_has_tags_of_both_languages(both: Both, tags: tuple[str, ...], message: str) -> None:
    code = both.codes[1]
    tokenizers = ExistingTokenizers(models=(both.vocabulary.model,) * 2, origin="init=RUN")
    tokenizers.train([], [], (language_tag(code), source_tag(code)))
    with pytest.raises(ConfigError, match=message.format(code)):
        tokenizers.train([], [], [tag.format(code) for tag in tags])
    with pytest.raises(ConfigError, match=r"no source language is given.*--src CODE"):
        list(languages_of(both.contents.tokenizers[0]).tagged(["one"], code, ""))


@pytest.mark.day
@pytest.mark.parametrize("vocabulary", ["grow", "own"])
def test_files_of_one_pair_get_the_tags_that_it_reads(exported: tuple[Both, Translator], vocabulary: str) -> None:
    """With ``grow`` the tags of the data are those typed."""
    run, (src, tgt, *_) = exported[0].run, exported[0].codes
    files = (f"data.train=[a.{src},a.{tgt}]", "data.val=10", f"data.src_lang={src}", f"data.tgt_lang={tgt}")
    given = composed("train", f"init={run}", "data=parallel", *files)
    assert build(given.data).tags == (language_tag(tgt), source_tag(src))
    with_other = composed("train", f"init={run}", f"init.vocabulary={vocabulary}", "data=parallel", *files)
    assert build(with_other.data).tags == ()


@pytest.mark.day
@pytest.mark.parametrize("vocabulary", ["grow", "own"])
def test_its_vocabulary_stays(exported: tuple[Both, Translator], vocabulary: str) -> None:
    run, words = exported[0].run, ("run_dir=run", f"init.vocabulary={vocabulary}")
    options = read_options(composed("train", f"init={run}", *words), Train)
    with pytest.raises(ConfigError, match=f"init.vocabulary is {vocabulary}, .* remove init.vocabulary"):
        tokenizer_maker(options, exported[0].contents)


def test_a_language_that_the_model_lacks_cannot_be_kept(both: Both, tmp_path: Path) -> None:
    code = both.codes[0]
    with pytest.raises(ConfigError, match=f"did you mean .*{code}"):
        both.vocabulary.cut([f"{code}x"], ())
