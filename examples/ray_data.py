"""Translates files on all machines of a Ray cluster, or on all cores of one machine: each task translates one file.

    pip install '.[cpu,ray]'
    python examples/ray_data.py exports/NAME corpus/*.txt translated --on-error blank
    python examples/ray_data.py exports/NAME corpus/*.parquet translated --column text
    python examples/ray_data.py exports/NAME-fp16 corpus/*.txt translated --gpus 1    # exported with precision=fp16

Each input gives a file of the same name in the output folder: of lines, which may be compressed, or of Parquet, with
one column more (docs/deployment.md). Files appear when they are whole, and those that exist are skipped, so what was
lost with a machine is made again, now or when this is typed again. Every machine sees the files and ``exports/NAME`` at
the same paths. Give it more files than cores; `split -l 250000` makes them.
"""

import argparse
from pathlib import Path
from typing import Any

import ray

from softsearch.runtime import run_command


def translate(bundle: Path, source: Path, output: Path, options: argparse.Namespace) -> None:
    """Does what `softsearch translate` does, on one thread."""
    words = ["--input", source, "--output", output, "--threads", 1, "--beam", options.beam]
    words += ["--on-error", options.on_error, "--provider", "cuda" if options.gpus else "cpu"]
    if options.column and source.suffix == ".parquet":
        words += ["--column", options.column]
    run_command(["translate", str(bundle), *map(str, words)])


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("input", nargs="+", type=Path, help="files of lines, or of Parquet")
    parser.add_argument("output", type=Path, help="folder")
    parser.add_argument("--column", help="of Parquet files: the text to translate")
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
        if not output.exists():
            # A task whose machine is lost is tried again; one that raises an error is not.
            task = ray.remote(num_cpus=1, num_gpus=options.gpus, max_retries=3)(translate)
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
