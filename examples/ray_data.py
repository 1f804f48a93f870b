"""Translates a corpus on all machines of a Ray cluster, or on all cores of one machine: each actor has a translator.

    pip install '.[cpu,ray]'
    python examples/ray_data.py exports/NAME corpus.txt translated.txt --actors 8
    python examples/ray_data.py exports/NAME corpus/*.parquet translated --column text --actors 8

Text files give one text file, line for line in the same order. Parquet files give a folder of Parquet files, with the
column ``translation`` after the columns that were there. Every machine needs ``exports/NAME`` at the same path.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import ray.data
from numpy.typing import NDArray

from softsearch import Translator
from softsearch.text import decode_line

Batch = dict[str, NDArray[Any]]


class Translation:
    """An actor: opens the bundle once and translates batches on one thread."""

    def __init__(self, bundle: str, column: str, search: dict[str, Any]) -> None:
        self.translator, self.column, self.search = Translator(bundle, threads=1), column, search

    def __call__(self, batch: Batch) -> Batch:
        """Add the column ``translation``."""
        translations = self.translator.translate(batch[self.column].tolist(), **self.search)
        return batch | {"translation": np.array([best.text for best in translations], dtype=object)}


def lines(row: dict[str, Any]) -> list[dict[str, str]]:
    """The lines of a file; Ray's own reader would also cut at U+2028 and its like."""
    raw = row["bytes"].removesuffix(b"\n").split(b"\n")
    return [{"text": decode_line(line, row["path"], number)} for number, line in enumerate(raw, start=1)]


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("input", nargs="+", type=Path, help="text files, or Parquet files")
    parser.add_argument("output", type=Path)
    parser.add_argument("--column", default="text", help="of Parquet files: the text to translate")
    parser.add_argument("--actors", type=int, default=1, help="at most the CPUs of the cluster less one, which reads")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=512, help="sentences that an actor gets at a time")
    return parser.parse_args()


def main() -> None:
    """Read, translate and write, block by block."""
    options = parse_options()
    ray.init(ignore_reinit_error=True)
    cpus = int(ray.cluster_resources()["CPU"])
    if options.actors >= cpus:
        raise SystemExit(f"--actors is {options.actors}, expected less than the {cpus} CPUs: reading needs one")
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    paths = sorted(map(str, options.input))
    parquet = all(path.endswith(".parquet") for path in paths)
    corpus = (
        ray.data.read_parquet(paths)
        if parquet
        else ray.data.read_binary_files(paths, include_paths=True).flat_map(lines)
    )
    translated = corpus.repartition(target_num_rows_per_block=options.batch).map_batches(
        Translation,
        fn_constructor_args=(
            str(options.bundle.resolve()),
            options.column if parquet else "text",
            {"beam": options.beam},
        ),
        compute=ray.data.ActorPoolStrategy(size=options.actors),
        batch_size=options.batch,
    )
    if parquet:
        translated.write_parquet(str(options.output), mode=ray.data.SaveMode.ERROR)
        return
    with options.output.open("w", encoding="utf-8", newline="\n") as output:
        for row in translated.iter_rows():
            output.write(row["translation"] + "\n")


if __name__ == "__main__":
    main()
