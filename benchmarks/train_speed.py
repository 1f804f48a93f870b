"""Training speed of the lab, through Lightning as users run it, beside JoeyNMT and MarianMT: one interleaved run.

The peers run as shipped, MarianMT under Hugging Face's Trainer and for transformer_tiny alone. All train one of three
configurations on Multi30k (lowercased, tokenised): transformer_tiny, or transformer_small with 3 + 3 layers of 256 and
1,024 units, in batches of 4,096 target tokens; or rnnsearch with a bidirectional encoder of 512 units, embeddings of
256 and an output layer of its own, 512 wide, in batches of 80 sentences. Each measurement is a process of its own, and
they take turns, so that a busy machine slows all alike: only the ratios within a round mean much.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from softsearch import __version__
from softsearch.app import describe_machine

ROOT = Path(__file__).resolve().parents[1]
JOEY = ROOT / "benchmarks" / "joeynmt"
MARIAN = ROOT / "benchmarks" / "marianmt"
LAB, PEER = "softsearch", "JoeyNMT"
CONFIGURATIONS = {  # JoeyNMT's config, the lab's batches, its other options
    "transformer_tiny": ("a.yaml", {"tokens": 4096}, ("model=transformer_tiny",)),
    "transformer_small": (
        "b.yaml",
        {"tokens": 4096},
        (
            "model=transformer_tiny", "model.embeddings.dim=256",
            *(f"model.{side}.{key}" for side in ("encoder", "decoder") for key in ("num_layers=3", "d_ff=1024")),
        ),
    ),
    "rnnsearch": (
        "c.yaml",
        {"sentences": 80, "tokens": 100_000},
        (
            "model=rnnsearch", "model.embeddings.dim=256", "model.embeddings.tie=none", "model.encoder.hidden_dim=512",
            "model.decoder.hidden_dim=512", "model.decoder.attention.dim=512", "model.decoder.readout.dim=512",
        ),
    ),
}  # fmt: skip

PRECISIONS = {
    "float32": ("trainer.precision=32-true", "loss.bfloat16=false"),
    "bfloat16": ("trainer.precision=bf16-mixed",),
    "bfloat16-output": ("trainer.precision=32-true", "loss.bfloat16=true"),  # the output layer's products alone
}

Figures = dict[str, float]


def run_lab(
    model: str,
    root: Path,
    folder: Path,
    *,
    steps: int,
    precision: str,
    threads: int,
    processes: int,
    overrides: Sequence[str],
) -> Figures:
    """Train a few steps with ``src/train.py`` and read the figures from the run's metrics.json.

    The lab's figures include its first steps and its waiting for batches; the peers' leave both out. Several processes
    share the tokens and the threads.
    """
    batching = [f"batching.{key}={value // processes}" for key, value in CONFIGURATIONS[model][1].items()]
    together = (
        ["trainer=ddp", "trainer.accelerator=cpu", f"trainer.devices={processes}"] if processes > 1 else ["trainer=cpu"]
    )
    command = [
        sys.executable, "src/train.py", "data=multi30k", f"data.root={root}",
        "data.variant=lc_tok", "tokenizer.vocab_size=10000", f"trainer.max_steps={steps}",
        "trainer.val_check_interval=1000000", f"hydra.run.dir={folder}", "overwrite=true",
        # The test at the end is not measured: one token a sentence is enough of it.
        "search=greedy", "search.max_length_factor=0", "search.max_length_offset=1",
        *batching, *together, *PRECISIONS[precision], *CONFIGURATIONS[model][2], *overrides,
    ]  # fmt: skip
    _run(command, threads=max(1, threads // processes))
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return {
        "target_tokens_per_second": metrics["train/tokens_per_second"],
        "padding_efficiency": metrics["train/padding_efficiency"],
        "share_outside": metrics["train/outside_share"],
        "peak_memory_mb": metrics["train/peak_memory_mb"] * processes,
    }


def run_joeynmt(
    model: str, data: Path, folder: Path, *, steps: int, threads: int, preload: str | None = None
) -> Figures:
    """Train a few steps with JoeyNMT, after a warm-up of 5, and read the figures that measure.py prints."""
    config = JOEY / CONFIGURATIONS[model][0]
    command = [
        peer_python(JOEY), str(JOEY / "measure.py"), "train", "--config", str(config), "--data", str(data),
        "--out", str(folder), "--steps", str(steps),
    ]  # fmt: skip
    figures: Figures = json.loads(_run(command, threads=threads, preload=preload).splitlines()[-1])
    return figures


def run_marianmt(data: Path, folder: Path, *, steps: int, threads: int, precision: str) -> Figures:
    """The same with MarianMT, on JoeyNMT's data."""
    command = [
        peer_python(MARIAN), str(MARIAN / "measure.py"), "--data", str(data), "--out", str(folder), "--steps",
        str(steps), *(["--bf16"] if precision == "bfloat16" else []),
    ]  # fmt: skip
    figures: Figures = json.loads(_run(command, threads=threads).splitlines()[-1])
    return figures


def peer_python(peer: Path) -> str:
    """The interpreter of the environment that setup_peer.sh makes."""
    return str(peer.with_name(f".{peer.name}-venv") / "bin" / "python")


def _run(command: Sequence[str], *, threads: int, preload: str | None = None) -> str:
    """Run a process to its end and return what it wrote to standard output."""
    env = os.environ | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    if preload:
        env["LD_PRELOAD"] = preload
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise SystemExit(f"{tail}\ntrain_speed: exit status {done.returncode} from {' '.join(command)}")
    return done.stdout


def measure(contenders: dict[str, Callable[[int], Figures]], rounds: int) -> dict[str, list[Figures]]:
    """Let the contenders take turns; one list of figures for each, in the order of the rounds."""
    results: dict[str, list[Figures]] = {name: [] for name in contenders}
    for number in range(1, rounds + 1):
        for name, run in contenders.items():
            figures = run(number)
            results[name].append(figures)
            print(f"round {number}/{rounds}  {name:32s} {figures['target_tokens_per_second']:8,.0f} target tokens/s")
    return results


def report(results: dict[str, list[Figures]]) -> str:
    """Lay the results out as a table: medians (least to most) of the runs, ratios of the pairs within a round."""
    titles = ("target tokens/s, no padding", "real tokens", "peak MB", "outside step", f"times {PEER}")
    lines = [f"{'':32s} {titles[0]:>30s} {titles[1]:>12s} {titles[2]:>9s} {titles[3]:>13s} {titles[4]:>22s}"]
    peer = [figures["target_tokens_per_second"] for figures in results[PEER]]
    for name, runs in results.items():
        speeds = [figures["target_tokens_per_second"] for figures in runs]
        ratios = [speed / base for speed, base in zip(speeds, peer, strict=True)]
        middle = {key: statistics.median(figures[key] for figures in runs) for key in runs[0]}
        lines.append(
            f"{name:32s} {_spread(speeds, ',.0f'):>30s} {middle['padding_efficiency']:12.1%}"
            f" {middle['peak_memory_mb']:9,.0f} {middle['share_outside']:13.1%} {_spread(ratios, '.2f'):>22s}"
        )
    return "\n".join(lines)


def _spread(values: Sequence[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--root",
        type=Path,
        default=os.environ.get("SOFTSEARCH_MULTI30K"),
        metavar="FOLDER",
        help="Multi30k's train, val and test_2016_flickr .lc.tok files (default: $SOFTSEARCH_MULTI30K)",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "logs" / "train_speed", help="folder for runs and results")
    parser.add_argument("--model", choices=CONFIGURATIONS, default="transformer_tiny")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40, help="optimizer steps measured in each run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 2], help="the lab's, which share the threads")
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, help="the lab's and MarianMT's")
    parser.add_argument("--preload", metavar="LIB", help="also run JoeyNMT with this allocator, say libtcmalloc.so.4")
    parser.add_argument("overrides", nargs="*", help="further options of src/train.py, as KEY=VALUE")
    options = parser.parse_args()  # fmt: skip
    if options.root is None:
        parser.error("where is Multi30k? Give --root FOLDER or set SOFTSEARCH_MULTI30K")
    if options.precision is None:
        options.precision = ["float32", "bfloat16-output" if options.model == "rnnsearch" else "bfloat16"]
    for peer in (JOEY, MARIAN) if options.model == "transformer_tiny" else (JOEY,):
        if not Path(peer_python(peer)).exists():
            parser.error(f"a peer is not installed: run benchmarks/setup_peer.sh {peer.name} first")
    options.root, options.out = options.root.resolve(), options.out.resolve()
    return options


def main() -> None:
    """Prepare the data, let the contenders take turns, print the table and keep the figures as JSON."""
    options = parse_options()
    data = options.out / "joeynmt-data"
    _run([peer_python(JOEY), str(JOEY / "measure.py"), "prepare", "--root", str(options.root), "--data", str(data)],
         threads=options.threads)  # fmt: skip

    def joeynmt(preload: str | None) -> Callable[[int], Figures]:
        return lambda number: run_joeynmt(
            options.model,
            data,
            options.out / f"joeynmt-{number}",
            steps=options.steps,
            threads=options.threads,
            preload=preload,
        )

    def lab(precision: str, processes: int) -> Callable[[int], Figures]:
        return lambda number: run_lab(
            options.model, options.root, options.out / f"lab-{precision}-{processes}-{number}", steps=options.steps,
            precision=precision, threads=options.threads, processes=processes, overrides=options.overrides,
        )  # fmt: skip

    def marianmt(precision: str) -> Callable[[int], Figures]:
        return lambda number: run_marianmt(
            data, options.out / "marianmt", steps=options.steps, threads=options.threads, precision=precision
        )

    contenders = {PEER: joeynmt(None)}
    if options.preload:
        contenders[f"{PEER}, {Path(options.preload).name}"] = joeynmt(options.preload)
    for precision in options.precision:
        if options.model == "transformer_tiny" and precision != "bfloat16-output":
            contenders[f"MarianMT {precision}"] = marianmt(precision)
        for processes in options.processes:
            contenders[f"{LAB} {precision}" + f", {processes} processes" * (processes > 1)] = lab(precision, processes)
    results = measure(contenders, options.rounds)
    print(
        f"\n{report(results)}\n\n{describe_machine()}, "
        f"lightning {version('lightning')}, {options.threads} threads, softsearch {__version__}"
    )
    (options.out / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"all figures: {options.out / 'results.json'}")


if __name__ == "__main__":
    main()
