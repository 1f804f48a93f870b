"""Files made for a claim's trainings: once, in a place that the trainings name, and by their options alone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from softsearch.app.config.composition import composed
from softsearch.app.config.validation import read_options
from softsearch.data.pretrained_embeddings import fill_vectors
from softsearch.extras.claims.claim import read_claim
from softsearch.extras.claims.made_files import made_file, make_files, with_root
from softsearch.extras.claims.options import Reproduce
from softsearch.extras.claims.trainings import trainings
from softsearch.text.vocabulary import SPECIALS


def options(runs_dir: Path, *overrides: str) -> Reproduce:
    given = ("claim=pretrained_embeddings", "run_dir=out", f"runs_dir='{runs_dir}'", *overrides)
    return read_options(composed("reproduce", *given), Reproduce)


def test_word_vectors_are_made_once_and_read_by_trainings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = read_claim("pretrained_embeddings", "smallest")
    here = options(tmp_path / "here", f"cache_dir='{tmp_path}'")
    make_files(claim.files, here)
    path = made_file("english", claim.files, here)
    matrix = np.zeros((len(SPECIALS) + 2, 16), dtype=np.float32)
    assert "2 of 2 pieces found" in fill_vectors(matrix, [*SPECIALS, "▁and", "▁the"], path)
    assert np.abs(matrix[len(SPECIALS) :]).min() > 0
    first = path.read_bytes()
    monkeypatch.setattr("softsearch.extras.claims.made_files.build", None)  # which nothing calls again
    make_files(claim.files, here)
    assert path.read_bytes() == first
    claim = replace(claim, runs={name: claim.runs[name] for name in ("random_1000", "vectors_1000")})
    random, vectors = trainings(claim, here)
    assert f"vectors.src='{path}'" in vectors.overrides
    assert not any(each.startswith("vectors") for each in random.overrides)
    assert vectors.folder.name == trainings(claim, options(tmp_path / "there"))[1].folder.name
    wider = replace(claim, files={**claim.files, "english": claim.files["german"]})
    assert vectors.folder.name != trainings(wider, here)[1].folder.name


def test_measures_read_multi30k_from_the_folder_of_the_command() -> None:
    table1, fig2 = (read_claim(name, "cpu").measures for name in ("bahdanau2015_table1", "bahdanau2015_fig2"))
    given, without = table1["unknown"], fig2["scores"]
    assert given is not None
    assert without is not None
    assert with_root(given, Path("/texts")).options == [*given.options, "data.root='/texts'"]
    assert with_root(given, None) == given
    assert with_root(without, Path("/texts")) == without
