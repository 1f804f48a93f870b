"""Strategies with what a bundle recommends, and bans by name."""

from pathlib import Path
from typing import Any

import pytest

from softsearch.errors import ConfigError, CorpusError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.recommended import Kind
from softsearch.runtime.searches import banned_tokens, make_reranker, make_search, score_together
from softsearch.runtime.translator import Translator
from softsearch.search.beam import BeamSearch
from softsearch.search.greedy import Greedy
from softsearch.search.sampling import Sampling
from softsearch.text.vocabulary import UNK
from tests.unit.runtime.bundles import SRC_LINES, search, tokenizers

LINES = list(dict.fromkeys(SRC_LINES))
LIMITS = {"max_length_factor": 1.5, "max_length_offset": 10}


def test_the_bundle_s_recommendations_hold_where_nothing_else_is_said(bundle_dir: Path) -> None:
    manifest = Bundle.open(bundle_dir).manifest
    assert make_search(manifest) == BeamSearch(beam=3, length_penalty=1.0, **LIMITS)
    assert make_search(manifest, beam=7, max_length_factor=0) == BeamSearch(beam=7, **LIMITS | {"max_length_factor": 0})
    assert make_search(manifest, "greedy") == Greedy(**LIMITS)
    assert make_search(manifest, "sample", seed=4) == Sampling(seed=4, **LIMITS)


@pytest.mark.parametrize("kind", ["greedy", "beam", "sample", "exact"])
def test_every_search_translates_whatever_the_batch(bundle_dir: Path, kind: Kind) -> None:
    strategy = search(bundle_dir, kind, max_length_factor=0.0, max_length_offset=4)
    together, alone = (Translator(bundle_dir, strategy, batch_tokens=size, threads=1) for size in (1000, 1))
    lines = [*LINES, " ".join(LINES)]
    found = together.translate(lines)
    assert [n_best[0].text for n_best in found] == [n_best[0].text for n_best in alone.translate(lines)]
    assert any(n_best[0].text for n_best in found)
    assert {n_best[0].optimal for n_best in found} <= ({True, False} if kind == "exact" else {None})


def test_exact_search_says_what_it_could_not_prove(bundle_dir: Path) -> None:
    limits = {"max_length_factor": 0.0, "max_length_offset": 3}
    (best,), (blank,) = Translator(bundle_dir, search(bundle_dir, "exact", **limits)).translate(["one two", ""])
    (guess,) = Translator(bundle_dir, search(bundle_dir, "exact", max_nodes=1, **limits)).translate(["one two"])[0]
    assert (best.optimal, guess.optimal, blank.optimal) == (True, False, None)
    assert best.log_prob >= guess.log_prob


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"length_penalty": 0.0}, -3.0),
        ({"length_penalty": 1.0}, -3.0 / 4),
        ({"length_penalty": 1.0, "length_norm": "gnmt"}, -3.0 / (9 / 6)),
    ],
)
def test_a_translation_of_parts_has_the_score_of_the_whole(
    bundle_dir: Path, options: dict[str, Any], expected: float
) -> None:
    strategy = search(bundle_dir, **options)
    parts = [strategy.score(-2.0, 3), strategy.score(-1.0, 1)]  # type: ignore[union-attr]
    assert score_together(strategy, parts, [3, 1]) == pytest.approx(expected)
    assert score_together(search(bundle_dir, "greedy"), [-2 / 3, -1 / 1], [3, 1]) == pytest.approx(-3 / 4)
    reranker = make_reranker(strategy, Bundle.open(bundle_dir), [Bundle.open(bundle_dir)], [1.0, 0.5], 0.0)
    assert score_together(reranker, [-3.0, -1.5], [3, 1]) == pytest.approx(-4.5)


def test_banned_tokens_by_name(tmp_path: Path) -> None:
    tgt = tokenizers()[1]
    names = {name: token for name, (token, _) in tgt.vocabulary().items()}
    both = next(name for name in names if not name.startswith("\u2581") and f"\u2581{name}" in names)
    assert banned_tokens(tgt, [both]) == tuple(sorted((names[both], names[f"\u2581{both}"])))
    assert banned_tokens(tgt, [f"\u2581{both}", "<unk>"]) == (names[f"\u2581{both}"], UNK)
    (tmp_path / "bans").write_text(f"<unk>\n\u2581{both}\n", encoding="utf-8")
    assert banned_tokens(tgt, [f"@{tmp_path / 'bans'}"]) == (UNK, names[f"\u2581{both}"])


def test_a_name_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--ban Quatsch: the target vocabulary has no such token"):
        banned_tokens(tokenizers()[1], ["Quatsch"])
    with pytest.raises(CorpusError, match="nowhere"):
        banned_tokens(tokenizers()[1], [f"@{tmp_path / 'nowhere'}"])


def test_what_is_banned_does_not_come(bundle_dir: Path) -> None:
    tgt = tokenizers()[1]
    free = [found[0] for found in Translator(bundle_dir).translate(LINES)]
    pieces = sorted({piece for found in free for piece in found.tgt_pieces} - {"</s>"})
    banned = banned_tokens(tgt, pieces[:2])
    again = [found[0] for found in Translator(bundle_dir, search(bundle_dir, banned=banned)).translate(LINES)]
    assert not {piece for found in again for piece in found.tgt_pieces} & set(pieces[:2])
    assert [found.text for found in again] != [found.text for found in free]
