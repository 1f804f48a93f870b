"""What each filter, data source and step of a corpus costs: microseconds and bytes of memory for each further pair.

Each is run on 20,000 and on 60,000 generated pairs, in processes of their own; the difference counts. Memory is what
is held at most beyond the start, without pages of files. ``corpus_scale.py`` runs it.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from softsearch.data import Batching, Joined, Multilingual, MultiSource, Parallel, ParallelSource, Table
from softsearch.data.dataset import MixedRows
from softsearch.data.lexicon import train_lexicon
from softsearch.data.preparation.cleaned_text import CleanedText
from softsearch.data.preparation.links import links_by_model
from softsearch.data.preparation.selection import count_shared, mark_repeated, mark_unusual
from softsearch.data.preparation.sentence_hashes import sentence_hashes
from softsearch.data.preparation.text_parts import EVERYTHING, RawCorpus, make_text_parts
from softsearch.data.sampler import Shard
from softsearch.data.scripts import letters_of
from softsearch.evaluation.train_test_overlap import Overlap
from softsearch.text import Filters
from softsearch.text.filters import Cleaner

SIZES = 20_000, 60_000
PHRASES, WORDS = 4096, 20_000
SIDES = ("xx", "yy")
Work = Callable[[], object]
Make = Callable[[Path, int], Work]  # what is made before measuring begins


def write_pairs(folder: Path, name: str, pairs: int, seed: int) -> list[str]:
    """Write the two files of a corpus and return their names: three phrases a side, each hundredth pair repeated."""
    bank, rng = np.random.default_rng(0), np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    paths = []
    phrases = []
    for side in SIDES:
        words = ["".join(bank.choice(letters, bank.integers(2, 10))) + side for _ in range(WORDS)]
        ranks = np.minimum(np.exp(bank.uniform(0, np.log(WORDS), (PHRASES, 6))).astype(int), WORDS - 1)  # Zipf's law
        phrases.append([" ".join(words[r] for r in row[: bank.integers(1, 7)]) for row in ranks])
        paths.append(str(folder / f"{name}.{side}"))
    with Path(paths[0]).open("w") as src, Path(paths[1]).open("w") as tgt:
        for begin in range(0, pairs, 100_000):
            rows = rng.integers(0, PHRASES, (min(100_000, pairs - begin), 3))
            rows[99::100] = rows[98::100][: len(rows[99::100])]
            for file, bank_of_side in zip((src, tgt), phrases, strict=True):
                file.writelines(f"{bank_of_side[a]} {bank_of_side[b]} {bank_of_side[c]}\n" for a, b, c in rows.tolist())
    return paths


def plain(folder: Path, pairs: int, name: str = "train", seed: int = 1, **options: Any) -> Parallel:
    """A source of two files."""
    train, val = write_pairs(folder, name, pairs, seed), write_pairs(folder, "val", 1000, 2)
    return Parallel(**{"train": train, "val": val, "src_lang": "en", "tgt_lang": "de", **options})


def lines(folder: Path, pairs: int) -> list[tuple[str, str]]:
    """The pairs as text."""
    sides = (Path(path).read_text().splitlines() for path in write_pairs(folder, "train", pairs, 1))
    return list(zip(*sides, strict=True))


def of_filter(option: str, folder: Path, pairs: int) -> Work:
    """A filter of single pairs."""
    value = {"max_ratio": 3, "min_numbers": 0.5, "min_script": 0.5, "on_error": "skip"}.get(option, True)
    text, filters = lines(folder, pairs), Filters(**{option: value})
    letters = [letters_of("en", "src"), letters_of("de", "tgt")]
    return lambda: [filters.reason(src, tgt, letters) for src, tgt in text] and None


def of_all_pairs(option: str, _: Path, pairs: int) -> Work:
    """A filter that compares pairs with one another."""
    rng = np.random.default_rng(1)
    dropped = np.zeros(pairs, np.bool_)
    if option == "duplicates":
        return partial(mark_repeated, [rng.integers(0, 2**63, pairs, dtype=np.uint64)], dropped)
    return partial(mark_unusual, [rng.integers(5, 200, (pairs, 2)).astype(np.uint16)], dropped, 3.0)


def of_files(make: Callable[[Path, int], ParallelSource], folder: Path, pairs: int) -> Work:
    """The files that a source writes, and the rows of an epoch."""
    source = make(folder, pairs)

    def work() -> None:
        source.train_files(folder / "cache")
        MixedRows([pairs], source.repeats([pairs]))

    return work


def table(kind: str, folder: Path, pairs: int) -> Table:
    """A table of one kind."""
    path, text = folder / f"table.{kind}", lines(folder, pairs)
    if kind == "parquet":
        import pyarrow as pa
        from pyarrow import parquet

        src, tgt = zip(*text, strict=True)
        parquet.write_table(pa.table({"src": src, "tgt": tgt}), path)
    elif kind == "jsonl":
        path.write_text("".join(f"{json.dumps({'src': src, 'tgt': tgt})}\n" for src, tgt in text))
    elif kind == "tmx":
        units = "".join(
            f'<tu><tuv xml:lang="src"><seg>{src}</seg></tuv><tuv xml:lang="tgt"><seg>{tgt}</seg></tuv></tu>\n'
            for src, tgt in text
        )
        path.write_text(f'<?xml version="1.0"?><tmx version="1.4"><header/><body>\n{units}</body></tmx>\n')
    else:
        path.write_text("src\ttgt\n" + "".join(f"{src}\t{tgt}\n" for src, tgt in text))
    return Table(train=path, val=path, src="src", tgt="tgt")


def several(folder: Path, pairs: int) -> Multilingual:
    """Two languages, half of the pairs each."""
    half = pairs // 2
    return Multilingual(
        pairs={"a": plain(folder, half, "a"), "b": plain(folder, half, "b", tgt_lang="fr")}, temperature=5
    )


def two_sources(folder: Path, pairs: int) -> MultiSource:
    """Two sources of a target."""
    return MultiSource(sources={"a": plain(folder, pairs), "b": plain(folder, pairs, src_lang="fr")})


def clean(folder: Path, pairs: int) -> Work:
    """Cleaning into a part, with hashes of pairs and of sentences."""
    src, tgt = map(Path, write_pairs(folder, "train", pairs, 1))
    corpus = RawCorpus("train", Cleaner(src=src, tgt=tgt), ("src", "tgt"))

    def work() -> CleanedText:
        make_text_parts([corpus], folder, processes=1, progress=lambda _: None, share=EVERYTHING)
        return CleanedText([[*corpus.parts(folder)]], folder)

    return work


def shared(_: Path, pairs: int) -> Work:
    """Test pairs in the training text, when preparing."""
    hashes = np.random.default_rng(1).integers(0, 2**63, pairs, dtype=np.uint64)
    return partial(count_shared, [hashes], hashes[:1000])


def links(folder: Path, pairs: int) -> Work:
    """Links between words by Model 1, its training on all these pairs included."""
    corpus = clean(folder, pairs)()
    return lambda: sum(1 for _ in links_by_model(corpus, 1))  # type: ignore[arg-type]


def shortlist(folder: Path, pairs: int) -> Work:
    """Model 1 of shortlists."""
    ids: dict[str, int] = {}
    text = [
        [np.array([ids.setdefault(w, len(ids)) for w in side.split()]) for side in pair]
        for pair in lines(folder, pairs)
    ]
    src, tgt = zip(*text, strict=True)
    return partial(train_lexicon, src, tgt)


def plan(_: Path, pairs: int) -> Work:
    """The order of an epoch."""
    src, tgt = np.random.default_rng(1).integers(4, 37, (2, pairs)).astype(np.int32)
    return lambda: Shard(Batching().cut(src, tgt), src, tgt, seed=(1,)).plan(0)


def overlap(near: bool, folder: Path, pairs: int) -> Work:
    """Test sentences in the training text, when evaluating."""
    source, text = plain(folder, pairs), lines(folder, pairs)
    files = source.train_files(folder / "cache")
    [hashes] = sentence_hashes(source, files, folder / "cache", lambda _: None)
    found = Overlap(*zip(*text[:1000], strict=True), near=near)
    return (lambda: found.add_text(*zip(*text, strict=True))) if near else partial(found.add_hashes, hashes)


OF_ALL_PAIRS = ("duplicates", "max_length_z")
CELLS: dict[str, Make] = {
    **{
        f"filter: {each.name}": partial(of_all_pairs if each.name in OF_ALL_PAIRS else of_filter, each.name)
        for each in fields(Filters)
    },
    **{
        f"source: {name}": partial(of_files, make)
        for name, make in {
            "parallel": plain,
            "parallel, val=1000": partial(plain, val=1000),
            **{f"table, {kind}": partial(table, kind) for kind in ("tsv", "jsonl", "tmx", "parquet")},
            "joined": lambda folder, pairs: Joined(source=plain(folder, pairs), train=[1, 2]),
            "multilingual, temperature=5": several,
            "multi_source": two_sources,
        }.items()
    },
    "step: cleaning": clean,
    "step: test pairs in training text": shared,
    "step: links=auto": links,
    "step: order of an epoch": plan,
    "step: shortlist": shortlist,
    "step: overlap of evaluate": partial(overlap, False),
    "step: overlap=near": partial(overlap, True),
}


def anonymous() -> int:
    """Bytes of this process without pages of files."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) * 1024


def measure(cell: str, folder: Path, pairs: int) -> tuple[float, int]:
    """Run a cell in this process; returns CPU seconds, and bytes held at most beyond those at the start."""
    work = CELLS[cell](folder, pairs)
    before = most = anonymous()
    done = threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.005):
            most = max(most, anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.process_time()
    work()
    seconds = time.process_time() - begin
    done.set()
    watcher.join()
    return seconds, max(most, anonymous()) - before


def cost(cell: str, folder: Path) -> tuple[float, float]:
    """Microseconds and bytes for each further pair."""
    found = []
    for pairs in SIZES:
        own = folder / str(pairs)
        own.mkdir(parents=True)
        command = [sys.executable, __file__, cell, str(own), str(pairs)]
        found.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))
    (few_seconds, few_bytes), (seconds, many_bytes) = found
    more = SIZES[1] - SIZES[0]
    return (seconds - few_seconds) / more * 1e6, (many_bytes - few_bytes) / more


def main() -> None:
    """Measure one cell, for ``cost``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cell", choices=CELLS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pairs", type=int)
    options = parser.parse_args()
    print(json.dumps(measure(options.cell, options.folder, options.pairs)))


if __name__ == "__main__":
    main()
