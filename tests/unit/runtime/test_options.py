"""Search options: searches by name, scores of translations in parts, and banned tokens."""

from pathlib import Path
from pkgutil import resolve_name
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest

from softsearch.errors import ConfigError, CorpusError
from softsearch.runtime.banned import banned_tokens, expand_names
from softsearch.runtime.options import KINDS, LENGTHS, kinds_with, option_names, option_of
from softsearch.runtime.stages.table import STAGES
from softsearch.runtime.translate_options import TranslateOptions
from softsearch.runtime.translator import Translator
from softsearch.search.beam import BeamSearch
from softsearch.search.exact import ExactSearch
from softsearch.search.sampling import Sampling
from softsearch.text.vocabulary import UNK
from tests.support.bundles import SRC_LINES, tokenizers

LINES = list(dict.fromkeys(SRC_LINES))


@pytest.mark.parametrize("kind", ["greedy", "beam", "sample", "exact"])
def test_every_search_translates_whatever_the_batch(bundle_dir: Path, kind: str) -> None:
    together, alone = (
        Translator(bundle_dir, batch_tokens=size, threads=1).translate(
            [*LINES, " ".join(LINES)], search=kind, max_length=4
        )
        for size in (1000, 1)
    )
    assert [translation.text for translation in together] == [translation.text for translation in alone]
    assert any(translation.text for translation in together)
    assert {translation.optimal for translation in together} <= ({True, False} if kind == "exact" else {None})


def test_exact_search_says_what_it_could_not_prove(bundle_dir: Path) -> None:
    translator = Translator(bundle_dir)
    best, blank = translator.translate(["one two", ""], search="exact", max_length=3)
    (guess,) = translator.translate(["one two"], search="exact", max_length=3, max_nodes=1)
    assert (best.optimal, guess.optimal, blank.optimal) == (True, False, None)
    assert best.log_prob >= guess.log_prob


@pytest.mark.parametrize(
    ("options", "power"),
    [
        ({"length_penalty": 0.0}, 0),
        ({"length_penalty": 1.0}, 1),
        ({"search": "greedy"}, 1),
        ({"search": "sample"}, 1),
        ({"search": "rerank", "rescore_weights": [1.0, 0.0], "rescore_length_penalty": 0.0}, 0),
    ],
)
def test_a_translation_in_parts_has_the_score_of_the_whole(
    bundle_dir: Path, options: dict[str, Any], power: int
) -> None:
    (found,) = Translator(bundle_dir, rescore=[bundle_dir]).translate([" ".join(LINES)], **{"search": "beam"} | options)
    assert found.src_pieces.count("</s>") > 1
    assert found.score == pytest.approx(found.log_prob / len(found.tgt_pieces) ** power, rel=1e-4)


def test_with_models_to_rescore_with_reranking_is_the_default(bundle_dir: Path) -> None:
    translator = Translator(bundle_dir, rescore=[bundle_dir])
    assert translator.translate(LINES) == translator.translate(LINES, search="rerank")
    assert translator.translate(LINES, search="beam") == Translator(bundle_dir).translate(LINES)


def test_which_searches_have_an_option() -> None:
    assert kinds_with("beam") == ["beam", "exact", "rerank"]
    assert kinds_with("n_best") == ["beam", "sample", "rerank"]
    assert kinds_with("alignments") == kinds_with("banned") == ["greedy", "beam", "sample", "rerank"]
    assert kinds_with("prefix") == ["greedy", "beam", "sample"]
    assert kinds_with("rescore_weights") == ["rerank"]
    assert kinds_with("search") == []


def test_banned_tokens_by_name(tmp_path: Path) -> None:
    tgt = tokenizers()[1]
    names = {name: token for name, (token, _) in tgt.vocabulary().items()}
    both = next(name for name in names if not name.startswith("\u2581") and f"\u2581{name}" in names)
    assert banned_tokens(tgt, [both]) == tuple(sorted((names[both], names[f"\u2581{both}"])))
    assert banned_tokens(tgt, [f"\u2581{both}", "<unk>"]) == (names[f"\u2581{both}"], UNK)
    (tmp_path / "bans").write_text(f"<unk>\n\u2581{both}\n", encoding="utf-8")
    assert expand_names([f"@{tmp_path / 'bans'}", "x"]) == ["<unk>", f"\u2581{both}", "x"]


def test_a_name_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"banned Quatsch: the target vocabulary has no such token"):
        banned_tokens(tokenizers()[1], ["Quatsch"])
    with pytest.raises(CorpusError, match="nowhere"):
        expand_names([f"@{tmp_path / 'nowhere'}"])


def test_banned_tokens_are_never_generated(bundle_dir: Path) -> None:
    translator = Translator(bundle_dir)
    free = translator.translate(LINES)
    pieces = sorted({piece for found in free for piece in found.tgt_pieces} - {"</s>"})
    again = translator.translate(LINES, banned=pieces[:2])
    assert not {piece for found in again for piece in found.tgt_pieces} & set(pieces[:2])
    assert [found.text for found in again] != [found.text for found in free]


def test_the_typed_keywords_are_the_options() -> None:
    typed = get_type_hints(TranslateOptions)
    search = {name: Any for kind in KINDS for name in option_names(kind)} | BeamSearch.hints | Sampling.hints
    search = {option_of(name): hint for name, hint in (search | ExactSearch.hints).items()}
    classes = [resolve_name(f"softsearch.runtime.stages.{place}") for place in STAGES]
    assert [tuple(stage.hints) for stage in classes] == [*STAGES.values()]
    stages = {name: hint for stage in classes for name, hint in stage.hints.items()}
    assert typed.keys() == search.keys() - {"prefix", "rescore"} | stages.keys()
    for name, hint in (search | stages).items():
        if name in typed and name not in (*LENGTHS, "banned", "keep", "glossary"):  # which take more than they are
            assert hint is Any or _plain(hint) == _plain(typed[name]), name


def _plain(hint: Any) -> set[Any]:
    """The types of an annotation, without ranges and None."""
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return {kind for each in get_args(hint) for kind in _plain(each)} - {NoneType}
    return {hint}


def test_a_misspelt_keyword_is_an_error_of_types_and_of_ours(translator: Translator) -> None:
    with pytest.raises(ConfigError, match="glossry is not a search option; did you mean 'glossary'"):
        translator.translate(["one"], glossry={})  # type: ignore[call-arg]
