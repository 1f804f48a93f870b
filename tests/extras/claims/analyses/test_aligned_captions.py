"""The captions of Multi30k whose words were aligned by reading."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.alignments.multi30k import read_split, sample
from softsearch.data.corpora.multi30k import Multi30k
from softsearch.errors import CorpusError
from softsearch.evaluation.alignment_error import alignment_error_rate
from softsearch.evaluation.test_set import read_split as read_text
from softsearch.extras.claims.analyses.aligners import LINKS, PAIRS, aligned_captions, model_1_links, read_aligned
from softsearch.text.corpus import read_lines


def test_each_pair_has_a_line_of_links_and_is_of_the_sample() -> None:
    numbers = [int(line.split()[0]) for line in read_lines(PAIRS)]
    assert numbers == sample(1014)
    links = [line.split() for line in read_lines(LINKS)]
    assert len(links) == 300
    assert sum("-" in link for line in links for link in line) == 3639
    assert sum("?" in link for line in links for link in line) == 428


def test_links_fit_the_text_and_model_1_is_as_far_from_them_as_it_was(multi30k_dir: Path) -> None:
    lines, gold = aligned_captions(read_split(multi30k_dir, "val"))
    assert [sum(len(line.split()) for line in side) for side in lines] == [3940, 3804]
    for source, target, links in zip(*lines, gold, strict=True):
        if source.endswith(".") and target.endswith("."):
            assert (len(source.split()) - 1, len(target.split()) - 1) in links.sure
    sources, targets = read_split(multi30k_dir, "train")
    found = model_1_links((sources[:1000], targets[:1000]), lines)  # a second; of all pairs: benchmarks/alignments
    assert alignment_error_rate(found, gold) == pytest.approx(0.4284, abs=0.002)


def test_measures_of_models_of_multi30k_read_these_pairs(multi30k_dir: Path, tmp_path: Path) -> None:
    source = Multi30k(root=multi30k_dir)
    system: Any = SimpleNamespace(source=source)
    text, gold = read_aligned(system, read_text(source, "test", tmp_path, ""), tmp_path)
    assert (text.lines, gold) == aligned_captions(read_split(multi30k_dir, "val"))
    assert (text.src_lang, text.tgt_lang, text.text_form) == ("en", "de", "lc_tok")


def test_another_text_is_refused() -> None:
    with pytest.raises(CorpusError, match=r"line 2 of .* is 'b \|\|\| b', which is not the pair that was aligned"):
        aligned_captions((["a", "b"], ["a", "b"]))
