"""A parallel corpus small enough to train a tokenizer on in no time."""

import random
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from softsearch.data.corpora.base import FilePair
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.dataset import ParallelDataset
from softsearch.data.preparation.encode import TokenWriter, flat
from softsearch.text.tokenizer import TokenizerTrainer

TRAINER = TokenizerTrainer(kind="char", vocab_size=60)
WORDS = {
    "en": ("a", "dog", "cat", "red", "big", "runs", "sits", "here", "there", "now"),
    "de": ("ein", "hund", "katze", "rot", "groß", "rennt", "sitzt", "hier", "dort", "jetzt"),
}


def write_pair(folder: Path, name: str, pairs: int, seed: int = 0) -> FilePair:
    """Writes ``name.en`` and ``name.de``, word by word translations of 1 to 7 words."""
    rng = random.Random(seed)
    sentences = [[rng.randrange(10) for _ in range(rng.randint(1, 7))] for _ in range(pairs)]
    paths = []
    for lang, words in WORDS.items():
        path = folder / f"{name}.{lang}"
        path.write_text("".join(f"{' '.join(words[i] for i in ids)}\n" for ids in sentences), encoding="utf-8")
        paths.append(path)
    return paths[0], paths[1]


def write_corpus(folder: Path, *, train: int = 60, val: int = 8, test: int = 0) -> Parallel:
    """A source with files for each split that has pairs."""
    return Parallel(
        train=write_pair(folder, "train", train, seed=1),
        val=write_pair(folder, "val", val, seed=2),
        test=write_pair(folder, "test", test, seed=3) if test else None,
    )


def write_store(path: Path, sentences: Sequence[Sequence[int]], vocab_size: int) -> None:
    """Writes a store of token ids."""
    with ExitStack() as stack:
        TokenWriter(path, stack).append(*flat(sentences, vocab_size))


def ids_of(dataset: ParallelDataset, index: int) -> tuple[list[int], list[int]]:
    """The token ids of a pair."""
    return dataset.src[index].tolist(), dataset.tgt[index].tolist()


def files_of(cache: Path) -> dict[str, bytes]:
    """The contents of all that was prepared, by path."""
    folders = (cache / "prepared", cache / "parts")
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {path.relative_to(cache).as_posix(): path.read_bytes() for path in paths}
