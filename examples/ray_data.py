"""Translates files on all machines of a Ray cluster, or on all cores of one machine: each task translates one file.

    pip install '.[cpu,ray]'
    python examples/ray_data.py exports/NAME corpus/*.txt translated --on-error blank
    python examples/ray_data.py exports/NAME corpus/*.parquet translated --column text
    python examples/ray_data.py exports/NAME-fp16 corpus/*.txt translated --gpus 1    # exported with precision=fp16

Each input gives a file of the same name in the output folder: of lines, which may be compressed, or of Parquet, with
the column ``translation`` after those that were there. Files appear when they are whole, and those that exist are
skipped, so what was lost with a machine is made again, now or when this is typed again. Every machine sees the files
and ``exports/NAME`` at the same paths. Give it more files than cores; `split -l 250000` makes them.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray
from pyarrow import parquet

from softsearch import InputError, Translator
from softsearch.runtime import run_command

ROWS = 1024  # of Parquet that are translated together


def translate_lines(bundle: Path, source: Path, output: Path, options: argparse.Namespace) -> None:
    """Does what `softsearch translate` does, on one thread."""
    words = ["--input", source, "--output", output, "--threads", 1, "--beam", options.beam]
    words += ["--on-error", options.on_error, "--provider", "cuda" if options.gpus else "cpu"]
    run_command(["translate", str(bundle), *map(str, words)])


def translate_table(bundle: Path, source: Path, output: Path, options: argparse.Namespace) -> None:
    """Adds a column to a Parquet file, some rows at a time."""
    translator = Translator(bundle, threads=1, provider="cuda" if options.gpus else "cpu")

    def translated(texts: list[str]) -> list[str]:
        try:
            return [best.text for best in translator.translate([text or "" for text in texts], beam=options.beam)]
        except InputError:
            if options.on_error == "raise":
                raise
        half = len(texts) // 2
        return [*translated(texts[:half]), *translated(texts[half:])] if half else [""]

    file, partial = parquet.ParquetFile(source), output.with_name(f".{output.name}.partial")
    schema = file.schema_arrow.append(pa.field("translation", pa.string()))
    with parquet.ParquetWriter(partial, schema) as writer:
        for batch in file.iter_batches(ROWS):
            column = pa.array(translated(batch.column(options.column).to_pylist()), pa.string())
            writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, column], schema=schema))
    partial.rename(output)


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("input", nargs="+", type=Path, help="files of lines, or of Parquet")
    parser.add_argument("output", type=Path, help="folder")
    parser.add_argument("--column", default="text", help="of Parquet files: the text to translate")
    parser.add_argument("--on-error", choices=("raise", "blank"), default="raise", help="what to do with a bad line")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--gpus", type=float, default=0, help="of each task, such as 1 or 0.5; 0: on a CPU")
    return parser.parse_args()


def main() -> None:
    """Translates the files that are missing; one that cannot be translated does not stop the others."""
    options = parse_options()
    ray.init(ignore_reinit_error=True)
    names = [path.name for path in options.input]
    if len({*names}) < len(names):
        raise SystemExit("two inputs have the same name, but go into one folder; rename one, or call this twice")
    options.output.mkdir(parents=True, exist_ok=True)
    tasks: dict[Any, Path] = {}
    for source in options.input:
        output = (options.output / source.name).resolve()
        work: Callable[..., None] = translate_table if source.suffix == ".parquet" else translate_lines
        if not output.exists():
            # A task whose machine is lost is tried again; one that raises an error is not.
            task = ray.remote(num_cpus=1, num_gpus=options.gpus, max_retries=3)(work)
            tasks[task.remote(options.bundle.resolve(), source.resolve(), output, options)] = source
    print(f"{len(names) - len(tasks)} of {len(names)} files are there")
    failed, left = 0, [*tasks]
    while left:
        (done,), left = ray.wait(left)
        try:
            ray.get(done)
            print(f"{tasks[done]}: done, {len(left)} left", flush=True)
        except ray.exceptions.RayError as error:
            failed += 1
            print(f"{tasks[done]}: {str(error).strip().splitlines()[-1]}", flush=True)
    if failed:
        raise SystemExit(f"{failed} files could not be translated; type this again when the cause is mended")


if __name__ == "__main__":
    main()
