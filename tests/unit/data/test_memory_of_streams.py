"""Sources read text in streams: three times the pairs need no more memory, apart from files that are mapped."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softsearch.app.systems.texts import evenly, read_training_text
from softsearch.data import dataset
from softsearch.data.corpora import groups
from softsearch.data.corpora.base import ParallelSource
from softsearch.data.corpora.joined import Joined
from softsearch.data.corpora.multi_source import MultiSource
from softsearch.data.corpora.multilingual import Multilingual
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.corpora.table import Table
from softsearch.data.dataset import MixedRows
from softsearch.data.existing_tokenizers import ExistingTokenizers
from softsearch.data.preparation import row_index, selection, text_parts
from softsearch.data.preparation.prepare import prepare
from softsearch.text.filters import Filters
from softsearch.text.tokenizer import train_tokenizer

FEW, MANY = 20_000, 60_000
ALLOWED = 40  # bytes for each further pair


def corpus(folder: Path, pairs: int, name: str = "train") -> list[Path]:
    """Writes files of short lines, about a third of which occur several times."""
    numbers = np.random.default_rng(1).integers(0, 3 * pairs, pairs).tolist()
    paths = [folder / f"{name}.{language}" for language in ("en", "de")]
    for path in paths:
        with path.open("w") as file:
            file.writelines(f"{path.suffix[1:]} {number}\n" for number in numbers)
    return paths


def plain(folder: Path, pairs: int, **options: Any) -> Parallel:
    files = {"train": corpus(folder, pairs), "val": corpus(folder, 10, "val")}
    return Parallel(**{**files, "src_lang": "en", "tgt_lang": "de", **options})


def table(folder: Path, pairs: int) -> Table:
    path = folder / "train.tsv"
    path.write_text("".join(f"en {number}\tde {number}\n" for number in range(pairs)))
    return Table(train=path, val=path, src=1, tgt=2)


def several(folder: Path, pairs: int) -> Multilingual:
    return Multilingual(pairs={"a": plain(folder, pairs), "b": plain(folder, pairs, tgt_lang="fr")})


def two_sources(folder: Path, pairs: int) -> MultiSource:
    return MultiSource(sources={"a": plain(folder, pairs), "b": plain(folder, pairs, src_lang="fr")})


SOURCES: dict[str, Callable[[Path, int], ParallelSource]] = {
    "joined": lambda folder, pairs: Joined(source=plain(folder, pairs), train=[1, 2, 3], held_out=[1]),
    "multi_source": two_sources,
    "multilingual": several,
    "table": table,
    "held_out": lambda folder, pairs: plain(folder, pairs, val=100, test=50),
}


def files(name: str) -> Callable[[Path, int], Callable[[], object]]:
    return lambda folder, pairs: partial(SOURCES[name](folder, pairs).files, folder / "cache")


def read_again(folder: Path, pairs: int) -> Callable[[], None]:
    """As ``dictionary`` and the shortlists of ``export`` read the training text."""
    source = plain(folder, pairs)

    def read() -> None:
        assert len(evenly(read_training_text(source, folder), 1000)) > 500
        assert len([*islice(read_training_text(source, folder), 1000)]) == 1000

    return read


def preparation(folder: Path, pairs: int) -> Callable[[], object]:
    source = plain(folder, pairs, filters=Filters(duplicates=True, max_length_z=3.0))
    model = train_tokenizer(["en de 0123456789"], kind="char", vocab_size=60).model  # training needs threads
    return lambda: prepare(source, ExistingTokenizers(models=(model, model), origin="this test"), folder / "cache")


# What to do is made before memory is limited, with its corpora.
WORK: dict[str, Callable[[Path, int], Callable[[], object]]] = {
    **{name: files(name) for name in SOURCES},
    "prepare": preparation,
    "read again": read_again,
    "weights": lambda _, pairs: lambda: MixedRows([100 * pairs, 10], [2.5, 0.5])[np.arange(9)],
}


@pytest.mark.day
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
@pytest.mark.parametrize("name", WORK)
def test_three_times_the_pairs_need_no_more_memory(name: str, tmp_path: Path) -> None:
    # Memory that is freed stays in the process, so that its size is the most that was needed.
    keep = {"PYTHONMALLOC": "malloc", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1)}
    command = [sys.executable, __file__, name, str(tmp_path)]
    found = subprocess.run(command, env=os.environ | keep, check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-2000:]


def run_in_limited_memory(name: str, folder: Path) -> None:
    """Works on few pairs, and then on many in the memory that the first took."""
    import resource  # not on Windows

    groups.CHUNK = selection.HASH_CHUNK = row_index._CHUNK = dataset._CHUNK = 4096
    text_parts.PART_LINES = 15_000
    work = []
    for number, pairs in enumerate((FEW, FEW, MANY)):
        own = folder / str(number)
        own.mkdir()
        work.append(WORK[name](own, pairs))
    work[0]()
    work[1]()  # memory is divided into somewhat more pieces
    data = next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmData" in line)
    limit = int(data.split()[1]) * 1024 + ALLOWED * (MANY - FEW)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # shared mappings of files are not counted
    work[2]()


if __name__ == "__main__":
    run_in_limited_memory(sys.argv[1], Path(sys.argv[2]))
