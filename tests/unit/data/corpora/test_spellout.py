"""The generated corpus: right sentences, disjoint splits, the same bytes each time; and words as people read them."""

import datetime as dt
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from softsearch.data.corpora.spellout import Language, Speller, Spellout
from softsearch.errors import ConfigError, CorpusError
from softsearch.evaluation.alignment_error import read_gold
from softsearch.text.filters import read_parallel

SMALL = {"train_size": 300, "val_size": 40, "test_size": 40}


def lines(source: Spellout, cache_dir: Path) -> dict[str, list[tuple[str, str]]]:
    pairs = {}
    for split, files in source.files(cache_dir).items():
        corpus = read_parallel(*files, keep_empty=True)
        pairs[split] = list(zip(corpus.src, corpus.tgt, strict=True))
    return pairs


def test_sizes_and_clean_text(tmp_path: Path) -> None:
    splits = lines(Spellout(**SMALL), tmp_path)
    assert {split: len(pairs) for split, pairs in splits.items()} == {"train": 300, "val": 40, "test": 40}
    for text in chain.from_iterable(chain.from_iterable(splits.values())):
        assert text == text.lower().strip()
        assert text.replace(" ", "").replace("-", "").isalpha(), text


@pytest.mark.parametrize(("src_lang", "tgt_lang"), [("en", "de"), ("es", "fr")])
def test_no_sentence_occurs_twice(tmp_path: Path, src_lang: str, tgt_lang: str) -> None:
    splits = lines(Spellout(src_lang=src_lang, tgt_lang=tgt_lang, **SMALL), tmp_path)
    pairs = list(chain.from_iterable(splits.values()))
    assert len({src for src, _ in pairs}) == len({tgt for _, tgt in pairs}) == len(pairs) == 380


def test_same_options_same_bytes_in_any_process(tmp_path: Path) -> None:
    here = Spellout(**SMALL).files(tmp_path / "here")
    program = (
        f"from pathlib import Path; from softsearch.data.corpora.spellout import Spellout as S; S(**{SMALL}).files"
    )
    for seed in ("1", "2"):
        command = [sys.executable, "-c", f"{program}(Path({str(tmp_path / seed)!r}))"]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
    for path in chain.from_iterable(here.values()):
        for seed in ("1", "2"):
            assert (tmp_path / seed / path.parent.name / path.name).read_bytes() == path.read_bytes()


def test_existing_files_are_used_again(tmp_path: Path) -> None:
    files = Spellout(**SMALL).files(tmp_path)
    before = [path.stat().st_mtime_ns for path in chain.from_iterable(files.values())]
    assert Spellout(**SMALL).files(tmp_path) == files
    assert [path.stat().st_mtime_ns for path in chain.from_iterable(files.values())] == before


def test_incomplete_folder_is_made_again(tmp_path: Path) -> None:
    files = Spellout(**SMALL).files(tmp_path)
    content = files["val"][1].read_bytes()
    files["val"][1].unlink()
    assert Spellout(**SMALL).files(tmp_path)["val"][1].read_bytes() == content
    assert [path for path in tmp_path.iterdir() if path.suffix != ".lock"] == [files["val"][1].parent]


def test_options_decide(tmp_path: Path) -> None:
    one = Spellout(**SMALL)
    other_seed = Spellout(seed=2, **SMALL)
    swapped = Spellout(src_lang="de", tgt_lang="en", **SMALL)
    larger = Spellout(**{**SMALL, "train_size": 400})
    assert lines(one, tmp_path)["train"] != lines(other_seed, tmp_path)["train"]
    assert lines(one, tmp_path)["test"] == lines(larger, tmp_path)["test"]
    assert lines(one, tmp_path)["train"] == [(src, tgt) for tgt, src in lines(swapped, tmp_path)["train"]]
    assert len({files["train"][0].parent for files in (s.files(tmp_path) for s in (one, other_seed, larger))}) == 3


def test_every_kind_of_sentence_is_frequent(tmp_path: Path) -> None:
    sources = [src for src, _ in lines(Spellout(**SMALL), tmp_path)["train"]]
    signs = {"date": "day ", "time": " at ", "past": " ago", "future": "in ", "choice": " or ", "amount": " cents"}
    for kind, sign in signs.items():
        assert sum(sign in src for src in sources) > 6, kind
    assert 5 < sum(len(src.split()) for src in sources) / len(sources) < 12
    lengths = Counter(min(len(src.split()), 4) for src in sources)
    assert all(lengths[words] > 6 for words in (1, 2, 3)), lengths


@pytest.mark.day
def test_single_words_are_in_the_training_data_alone(tmp_path: Path) -> None:
    splits = lines(Spellout(), tmp_path)
    words = {split: {src for src, tgt in pairs if " " not in src + tgt} for split, pairs in splits.items()}
    assert not words["test"] | words["val"]
    assert len(words["train"]) == 99 + 7 + 12  # numbers, weekdays, months


@pytest.mark.parametrize(("src_lang", "tgt_lang"), [("en", "de"), ("es", "fr")])
def test_short_pairs_are_single_words_of_each_kind_and_parts_of_dates(
    tmp_path: Path, src_lang: Language, tgt_lang: Language
) -> None:
    source = Spellout(src_lang=src_lang, tgt_lang=tgt_lang, **SMALL)
    plainly, splits = lines(source, tmp_path), lines(replace(source, short_size=1500), tmp_path)
    short = splits["train"][300:]
    assert splits == {**plainly, "train": [*plainly["train"], *short]}
    counts = Counter(pair for pair in short if " " not in "".join(pair))
    assert 800 < counts.total() < len(short) == 1500
    assert not {*short} & {*splits["test"], *splits["val"]}
    if src_lang == "en":
        expected = {"march": "märz", "forty": "vierzig", "zero": "null", "monday": "montag", "tenth": "zehnte"}
        expected |= {"kilometers": "kilometer", "days": "tage", "dollars": "dollar", "cents": "cent", "year": "jahr"}
        assert {*expected.items()} <= {*counts}
        assert counts["march", "märz"] > 5
        assert any(src.startswith("march the ") for src, _ in short)
    translations: dict[str, set[str]] = {}
    for src, tgt in counts:
        translations.setdefault(src, set()).add(tgt)
    assert [src for src, tgts in translations.items() if len(tgts) > 1] == []


@pytest.mark.parametrize(("pair", "linked_share"), [("en-de", 1.0), ("fr-es", 0.95)])
def test_the_sure_links_are_a_dictionary(tmp_path: Path, pair: str, linked_share: float) -> None:
    """Each word has one translation, wherever it stands, and nearly every target word is written from something."""
    src_lang, tgt_lang = pair.split("-")
    files = Spellout(src_lang=src_lang, tgt_lang=tgt_lang, train_size=2000, val_size=1, test_size=1).files(tmp_path)
    corpus = read_parallel(*files["train"])
    pairs = [(src.split(), tgt.split()) for src, tgt in zip(corpus.src, corpus.tgt, strict=True)]
    gold = read_gold(files["train"][0].with_suffix(".links"), [(len(src), len(tgt)) for src, tgt in pairs], first=0)
    found: dict[str, set[str]] = {}
    for (src, tgt), (sure, _) in zip(pairs, gold, strict=True):
        for i, j in sure:
            found.setdefault(src[i], set()).add(tgt[j])
    assert len(found) > 80
    assert not [word for word, translations in found.items() if len(translations) > 1]
    linked = sum(len({j for _, j in possible}) for _, possible in gold)
    assert linked >= linked_share * sum(len(tgt) for _, tgt in pairs)


def test_parts_of_several_words_are_linked_as_possible(tmp_path: Path) -> None:
    files = Spellout(train_size=1, val_size=1, test_size=100).files(tmp_path)
    corpus = read_parallel(*files["test"])
    lines = files["test"][0].with_suffix(".links").read_text().splitlines()
    links = {src: " ".join(sorted(line.split())) for src, line in zip(corpus.src, lines, strict=True)}
    # freitag der zwölfte februar zweitausendsiebenundzwanzig um sechs uhr zweiundzwanzig abends
    time = "friday february the twelfth twenty twenty-seven at six twenty-two in the evening"
    assert links[time] == "0-0 1-3 10?9 11?9 2-1 3-2 4?4 5?4 6-5 7?6 7?7 8-8 9?9"
    # fünftausendsiebenhundertelf pfund und achtundsiebzig pence
    amount = "five thousand seven hundred and eleven pounds sterling seventy-eight pence"
    assert links[amount] == "0?0 1?0 2?0 3?0 4?0 5?0 6?1 6?2 7?1 7?2 8-3 9-4"


@pytest.mark.parametrize("pair", ["en-fr", "de-es"])
def test_other_languages(tmp_path: Path, pair: str) -> None:
    src_lang, tgt_lang = pair.split("-")
    splits = lines(Spellout(src_lang=src_lang, tgt_lang=tgt_lang, **SMALL), tmp_path)
    for src, tgt in splits["train"]:
        assert src
        assert tgt
        assert not any(char.isdigit() for char in src + tgt)


def test_the_lines_of_the_default_pair(tmp_path: Path) -> None:
    """The figures in the documentation are those of this corpus."""
    files = Spellout(train_size=10, val_size=10, test_size=100).files(tmp_path)
    digests = [hashlib.sha256(path.read_bytes()).hexdigest()[:8] for path in files["test"]]
    assert digests == ["f7666bcc", "8e9d58aa"]


def test_one_language_is_no_pair() -> None:
    with pytest.raises(ConfigError, match=r"data\.src_lang and data\.tgt_lang are both 'en'"):
        Spellout(tgt_lang="en")


def test_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CorpusError, match=r"cannot write .*file/spellout-.*choose another cache folder"):
        Spellout(**SMALL).files(tmp_path / "file")


def test_disk_full_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    program = f"""
import resource, signal
from pathlib import Path
from softsearch.data.corpora.spellout import Spellout
from softsearch.errors import CorpusError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    Spellout(**{SMALL}).files(Path({str(tmp_path)!r}))
except CorpusError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "cannot write" in done.stdout
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


DAY = dt.date(1984, 3, 21)
EVENING = dt.time(19, 45)


@pytest.fixture(scope="module")
def english() -> Speller:
    return Speller("en")


@pytest.fixture(scope="module")
def german() -> Speller:
    return Speller("de")


def plain(text: str) -> str:
    """Without the roles of the words."""
    return re.sub(r"_\w+", "", text)


def test_numbers(english: Speller, german: Speller) -> None:
    assert plain(english.cardinal(1984)) == "one thousand nine hundred and eighty-four"
    assert plain(german.cardinal(4321)) == "viertausenddreihunderteinundzwanzig"
    assert (plain(english.ordinal(21)), plain(german.ordinal(21))) == ("twenty-first", "einundzwanzigste")


@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        ("en", "wednesday march the twenty-first nineteen eighty-four"),
        ("de", "mittwoch der einundzwanzigste märz neunzehnhundertvierundachtzig"),
        ("fr", "mercredi vingt et un mars mille neuf cent quatre-vingt-quatre"),
        ("es", "miércoles veintiuno de marzo de mil novecientos ochenta y cuatro"),
    ],
)
def test_date(lang: Language, expected: str) -> None:
    assert plain(Speller(lang).date(DAY)) == expected


@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        ("en", "wednesday at seven forty-five in the evening"),
        ("de", "mittwoch um sieben uhr fünfundvierzig abends"),
        ("fr", "mercredi à sept heures quarante-cinq du soir"),
        ("es", "miércoles a las siete cuarenta y cinco de la tarde"),
    ],
)
def test_time(lang: Language, expected: str) -> None:
    speller = Speller(lang)
    assert plain(speller.at_time(speller.weekday(DAY), EVENING)) == expected


def test_full_hours_name_no_minutes(english: Speller, german: Speller) -> None:
    assert plain(english.at_time("today", dt.time(0))) == "today at twelve midnight"
    assert plain(german.at_time("heute", dt.time(12))) == "heute um zwölf uhr mittags"


def test_relative(english: Speller, german: Speller) -> None:
    assert plain(english.relative(-3, "day")) == "three days ago"
    assert plain(german.relative(-3, "day")) == "vor drei tagen"
    assert plain(english.relative(90, "minute")) == "in ninety minutes"
    assert plain(german.relative(60, "year")) == "in sechzig jahren"


def test_money_and_measures(english: Speller, german: Speller) -> None:
    assert plain(english.amount(12, 5, "USD")) == "twelve dollars five cents"
    assert plain(german.amount(12, 53, "EUR")) == "zwölf euro und dreiundfünfzig cent"
    assert plain(english.quantity(12_345, "CHF")) == "twelve thousand three hundred and forty-five swiss francs"
    assert plain(german.quantity(20, "percent")) == "zwanzig prozent"
    assert (
        plain(english.joined([english.quantity(2, "kilometer"), english.quantity(3, "liter")]))
        == "two kilometers and three liters"
    )
    assert plain(german.joined(["eins", "zwei"], "or")) == "eins oder zwei"
