"""A data source: pairs in tab-separated files."""

import csv
import hashlib
from dataclasses import dataclass
from pathlib import Path

from softsearch import CorpusError
from softsearch.data import FilePair, ParallelSource, make_folder, refuse_unread


@dataclass(frozen=True, kw_only=True)
class MyAttentionSource(ParallelSource):
    """Files of lines ``source TAB target``.

    Args:
        train: the training file.
        val: the validation file.
        test: the test file, if any.
    """

    train: str
    val: str
    test: str | None = None

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Writes each column to a file of its own in ``cache_dir``; see ``ParallelSource``."""
        named = {"train": self.train, "val": self.val, "test": self.test}
        splits = {split: path for split, path in named.items() if path is not None}
        columns = {split: _columns(split, path) for split, path in splits.items()}
        folder = cache_dir / f"my_attention-{hashlib.sha256(repr(columns).encode()).hexdigest()[:16]}"

        def write(new: Path) -> None:
            for split, sides in columns.items():
                for side, lines in zip(("src", "tgt"), sides, strict=True):
                    (new / f"{split}.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

        make_folder(folder, write)
        return {split: (folder / f"{split}.src", folder / f"{split}.tgt") for split in columns}


def _columns(split: str, path: str) -> tuple[list[str], list[str]]:
    refuse_unread(split, path)
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"data.{split} names {path}, which cannot be read as UTF-8 text ({error})") from error
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise CorpusError(f"{path}:{number} has {len(row)} columns, expected source and target with a tab between")
    return [source for source, _ in rows], [target for _, target in rows]
