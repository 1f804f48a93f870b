"""Memory and time of preparing and iterating synthetic corpora, and what each filter and source costs; Linux only.

A pair is three phrases of one to six words on each side; every hundredth pair repeats the one before it, and is to be
dropped. First the costs of a pair are measured (``corpus_costs.py``), then corpora of 0.1 and 1 million pairs, or of
``--pairs``; what was measured before, in ``corpus_scale.json``, is not measured again. Preparing is ``softsearch
prepare``; iterating is a process of its own that starts two epochs and reads the second to its end. With ``--plan`` the
order of an epoch alone is made, of sentences of 4 to 36 random tokens. Resident memory is that of all processes
together, read from /proc ten times a second: anonymous memory, which is the program's, and pages of files, which are
the libraries and the memory-mapped data and which the system takes back when it needs them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from corpus_costs import CELLS, SIDES, cost, write_pairs

ROOT = Path(__file__).parents[1]
VOCAB = 8000


@dataclass
class Measured:
    """A process and its children, from start to end."""

    seconds: float = 0.0
    times: list[float] = field(default_factory=list)
    anonymous: list[float] = field(default_factory=list)  # MB
    files: list[float] = field(default_factory=list)  # MB
    output: str = ""


def measure(command: list[str]) -> Measured:
    """Run a command to its end, and watch the memory of it and of what it starts."""
    found, started = Measured(), time.perf_counter()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdout=output, stderr=errors, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
        )
        while process.poll() is None:
            sizes = [_resident(pid) for pid in _tree(process.pid)]
            found.times.append(time.perf_counter() - started)
            found.anonymous.append(sum(size[0] for size in sizes))
            found.files.append(sum(size[1] for size in sizes))
            time.sleep(0.1)
        found.seconds = time.perf_counter() - started
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            raise SystemExit(f"corpus_scale: {command[1]}: exit status {process.returncode}\n{errors.read()[-2000:]}")
        found.output = output.read()
    return found


def _tree(pid: int) -> list[int]:
    try:
        children = " ".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:  # it has ended meanwhile
        return []
    return [pid, *(below for child in children.split() for below in _tree(int(child)))]


def _resident(pid: int) -> tuple[float, float]:
    """Anonymous memory and pages of files, in MB."""
    try:
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    except OSError:
        return 0.0, 0.0
    anonymous, files = (int(lines.get(key, "0 kB").split()[0]) * 1024 / 1e6 for key in ("RssAnon", "RssFile"))
    return anonymous, files


def iterate(options: dict[str, list[str]], cache_dir: str) -> dict[str, float]:
    """Open prepared data, start two epochs and read the second, in this process; times in seconds."""
    from softsearch.data import Batching, Parallel, ParallelDataModule
    from softsearch.text import Filters, TokenizerTrainer

    source = Parallel(train=options["train"], val=options["val"], filters=Filters(duplicates=True))
    data = ParallelDataModule(
        source=source, tokenizer=TokenizerTrainer(vocab_size=VOCAB), batching=Batching(), cache_dir=cache_dir, seed=1
    )
    device = SimpleNamespace(type="cpu")
    limits = {"val_check_interval": 1.0, "check_val_every_n_epoch": 1, "limit_train_batches": 1.0}
    limits |= {"accumulate_grad_batches": 1, "max_epochs": -1, "max_steps": -1}
    strategy = SimpleNamespace(root_device=device)
    data.trainer = SimpleNamespace(world_size=1, global_rank=0, strategy=strategy, **limits)
    before = _resident(os.getpid())[0]
    clock = [time.perf_counter()]
    assert data.prepared.folder.is_dir()
    clock.append(time.perf_counter())
    loader = data.train_dataloader()
    first = next(iter(loader))
    clock.append(time.perf_counter())
    data.batches_trained = len(loader)
    batches = iter(loader)
    pairs = len(next(batches).src_tokens)
    clock.append(time.perf_counter())
    pairs += sum(len(batch.src_tokens) for batch in batches)
    clock.append(time.perf_counter())
    size = sum(path.stat().st_size for path in Path(cache_dir).rglob("*") if path.is_file()) / 1e6
    names = ("open", "first_epoch", "next_epoch", "read")
    times = dict(zip(names, np.diff(clock).tolist(), strict=True))
    return {**times, "pairs": pairs, "before": before, "disk": size, "batch": len(first.src_tokens)}


def row(folder: Path, pairs: int, processes: int) -> tuple[list[str], Measured, Measured]:
    """Measure one size."""
    options = {"train": write_pairs(folder, "train", pairs, 1), "val": write_pairs(folder, "val", 1000, 2)}
    cache = str(folder / "cache")
    files = [f"data.{split}=[{','.join(paths)}]" for split, paths in options.items()]
    config = [f"tokenizer.vocab_size={VOCAB}", f"processes={processes}", f"cache_dir={cache}"]
    config += ["data=parallel", "data.filters.duplicates=true", *files, f"hydra.run.dir={folder / 'log'}"]
    prepared = measure([sys.executable, "-m", "softsearch", "prepare", "model=transformer_tiny", *config])
    read = measure([sys.executable, __file__, "--iterate", json.dumps(options), "--folder", cache])
    found = json.loads(read.output.splitlines()[-1])
    by_chance = pairs - pairs // 100 - found["pairs"]
    assert 0 <= by_chance <= pairs / 1000, f"{found['pairs']} pairs are left of {pairs}"
    text = Path(options["train"][0]).stat().st_size + Path(options["train"][1]).stat().st_size
    cells = [
        f"{pairs:,}",
        f"{text / 1e6:,.0f}",
        f"{found['disk']:,.0f}",
        f"{prepared.seconds:,.0f}",
        f"{pairs / prepared.seconds:,.0f}",
        f"{max(prepared.anonymous):,.0f}",
        f"{found['open']:.1f}",
        f"{found['first_epoch']:.1f}",
        f"{found['next_epoch']:.1f}",
        f"{found['pairs'] / found['read']:,.0f}",
        f"{max(read.anonymous):,.0f}",
        f"{max(read.anonymous) - found['before']:,.0f}",
    ]
    return cells, prepared, read


def order(folder: Path, pairs: int) -> dict[str, float]:
    """Cut an epoch into batches and walk over their indices, in this process; times in seconds."""
    from softsearch.data import Batching
    from softsearch.data.dataset import TokenStore
    from softsearch.data.sampler import BucketBatchSampler, Indices, Shard, pairs_of_shard, shards_of

    stores, count = [TokenStore.of_files([folder / side], np.uint16) for side in SIDES], shards_of(pairs)

    def shard(number: int) -> tuple[Shard, Indices]:
        chosen = pairs_of_shard(pairs, number, count)
        lengths = [store.lengths(chosen) for store in stores]
        return Shard(Batching().cut(*lengths), *lengths, seed=(1, number)), chosen

    before, clock = _resident(os.getpid())[0], [time.perf_counter()]
    sampler = BucketBatchSampler(shard, count, pairs, position=lambda: 0, seed=1)
    clock.append(time.perf_counter())
    seen = sum(len(batch) for batch in sampler)
    clock.append(time.perf_counter())
    assert seen == pairs
    return {"shards": count, "start": clock[1] - clock[0], "epoch": clock[2] - clock[1], "before": before}


def plan(folder: Path, pairs: int) -> str:
    """A line about the order of an epoch over so many pairs."""
    rng = np.random.default_rng(1)
    for side in SIDES:
        ends = np.cumsum(rng.integers(4, 37, pairs), dtype=np.int64)
        np.concatenate(([0], ends)).tofile(folder / f"{side}.offsets")
        (folder / f"{side}.ids").touch()  # not read
    walked = measure([sys.executable, __file__, "--order", str(pairs), "--folder", str(folder)])
    found = json.loads(walked.output.splitlines()[-1])
    memory = max(walked.anonymous) - found["before"]
    return f"| {pairs:,} | {found['shards']} | {found['start']:.0f} | {found['epoch']:.0f} | {memory:,.0f} |"


HEAD = (
    "pairs", "text, MB", "prepared, MB", "prepare, s", "pairs/s", "peak, MB", "find again, s", "first epoch, s",
    "next epoch, s", "read, pairs/s", "peak, MB", "of it data, MB",
)  # fmt: skip


def draw(measured: dict[int, tuple[Measured, Measured]], path: Path) -> None:
    """Draw resident memory over the course of preparing and of iterating."""
    mpl.use("Agg")
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True)
    for number, (axis, title) in enumerate(zip(axes, ("preparing", "iterating"), strict=True)):
        for (pairs, pair), colour in zip(measured.items(), ("tab:green", "tab:blue", "tab:red", "k"), strict=False):
            run = pair[number]
            share = np.array(run.times) / run.seconds
            both = np.array(run.anonymous) + np.array(run.files)
            axis.plot(share, run.anonymous, colour, label=f"{pairs:,} pairs, {run.seconds:,.0f} s")
            axis.plot(share, both, colour, linestyle=":", linewidth=1)
        axis.set(title=title, xlabel="share of the time")
        axis.legend(loc=(0.3, 0.6), fontsize="small")
    axes[0].set_ylim(0)  # of both, now that all is drawn
    axes[0].set_ylabel("resident memory of all processes, MB\n(dotted: with pages of files)")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def keep(measured: dict[str, Any], path: Path) -> None:
    """Store what was measured, so that a second run goes on."""
    path.with_suffix(".new").write_text(json.dumps(measured))
    path.with_suffix(".new").replace(path)


def measure_costs(known: dict[str, Any], path: Path, folder: Path | None) -> list[str]:
    """Measure what is not known yet of each filter, source and step; returns a table."""
    table = ["| | microseconds a pair | bytes a pair |", "| --- | --- | --- |"]
    print("\n".join(table), flush=True)
    for cell in CELLS:
        if cell not in known["costs"]:
            with tempfile.TemporaryDirectory(dir=folder) as own:
                known["costs"][cell] = cost(cell, Path(own))
            keep(known, path)
        microseconds, size = known["costs"][cell]
        table.append(f"| {cell} | {microseconds:.2f} | {max(0, size):.0f} |")
        print(table[-1], flush=True)
    return table


def main() -> None:
    """Measure each cost and each size in processes of their own, and write the tables and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, help="where the corpora go, some GB for 10 million pairs")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results", help="for corpus_scale.md and .png")
    parser.add_argument("--plan", type=int, nargs="+", help="measure the order of an epoch over so many pairs, no more")
    parser.add_argument("--order", type=int, help=argparse.SUPPRESS)  # what a process of its own is told to order
    parser.add_argument("--iterate", help=argparse.SUPPRESS)  # what a process of its own is told to read
    options = parser.parse_args()
    if options.iterate:
        print(json.dumps(iterate(json.loads(options.iterate), str(options.folder))))
        return
    if options.order:
        print(json.dumps(order(options.folder, options.order)))
        return
    if options.plan:
        print("| pairs | shards | start, s | walk over the order, s | memory, MB |\n| --- | --- | --- | --- | --- |")
        for pairs in options.plan:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                print(plan(Path(folder), pairs), flush=True)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "corpus_scale.json"
    known = json.loads(path.read_text()) if path.exists() else {"costs": {}, "sizes": {}}
    table = [*measure_costs(known, path, options.folder), ""]
    table += [f"| {' | '.join(HEAD)} |", "| --- " * len(HEAD) + "|"]
    print("\n".join(table[-3:]), flush=True)
    measured = {}
    for pairs in options.pairs:
        if str(pairs) not in known["sizes"]:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                cells, *both = row(Path(folder), pairs, options.processes)
            known["sizes"][str(pairs)] = [cells, *map(asdict, both)]
            keep(known, path)
        cells, *runs = known["sizes"][str(pairs)]
        measured[pairs] = Measured(**runs[0]), Measured(**runs[1])
        table.append(f"| {' | '.join(cells)} |")
        print(table[-1], flush=True)
    (options.out / "corpus_scale.md").write_text("".join(f"{line}\n" for line in table))
    draw(measured, options.out / "corpus_scale.png")


if __name__ == "__main__":
    main()
