"""Where the time of a training step goes: a table by part, a table by operator, and a trace for Perfetto.

    python benchmarks/profile_step.py model=rnnsearch data=multi30k data.root=FOLDER
    python benchmarks/profile_step.py --models rnnsearch gru data=multi30k data.root=FOLDER    # one table, a row each
    OMP_NUM_THREADS=1 python benchmarks/profile_step.py --rounds 5 model=rnnsearch data=multi30k data.root=FOLDER

With --rounds nothing is profiled: it prints the target tokens of a CPU second, round by round over the same batches,
which other work on the machine disturbs less than seconds. The first round compiles the products of new shapes.

The steps are those of src/train.py without Lightning around them: the same model, batches, precision and optimizer.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from softsearch.process import tune_cpu

tune_cpu()  # before PyTorch is imported

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from softsearch import lab
from softsearch.app import describe_machine
from softsearch.data import Batch, ParallelDataModule
from softsearch.machine import peak_memory
from softsearch.training import TrainingStep, clip_by_norm

FORWARD = ("encoder", "start of the decoder", "decoder", "output layer and loss, both passes")
PARTS = (*FORWARD, "backward", "clipping", "optimizer")
Table = list[tuple[str, float, float]]  # name, milliseconds of a step, share


def batches(data: ParallelDataModule, seed: int) -> Iterator[Batch]:
    """Training batches in a random order, without end."""
    dataset = data.prepared.dataset("train")
    cut = data.batching.cut(dataset.src.lengths(), dataset.tgt.lengths())
    generator = torch.Generator().manual_seed(seed)
    while True:
        for index in torch.randperm(len(cut), generator=generator).tolist():
            yield dataset.__getitems__(cut[index].tolist())


def named(function: Callable[..., Any], part: str) -> Callable[..., Any]:
    """The function, recorded under a name."""

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with record_function(part):
            return function(*args, **kwargs)

    return wrapper


@contextmanager
def recorded(model: Any, loss: Any) -> Iterator[None]:
    """Records the parts of the forward pass."""
    places = ((model.encoder, "forward"), (model.decoder, "init_state"), (model.decoder, "features"), (loss, "forward"))
    for (owner, name), part in zip(places, FORWARD, strict=True):
        vars(owner)[name] = named(getattr(owner, name), part)
    yield
    for owner, name in places:
        del vars(owner)[name]


class Steps(NamedTuple):
    """A model with its training, ready to step."""

    options: Any
    model: Any
    loss: Any
    data: ParallelDataModule
    step: Callable[[int, Batch], int]  # number and batch -> target tokens


def prepare(overrides: list[str]) -> Steps:
    """Builds what src/train.py would train."""
    training = lab.Training(*overrides)
    options, model, loss, optimizer = training.options, training.model.train(), training.loss, training.make_optimizer()
    mixed = options.trainer.precision == "bf16-mixed"
    if options.compile:
        vars(model)["features"] = torch.compile(model.features, dynamic=True)

    def step(number: int, batch: Batch) -> int:
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            losses, tokens = training.method(TrainingStep(model, loss, batch, number=number))
        with record_function("backward"):
            (losses.smoothed / tokens).backward()
        with record_function("clipping"):
            clip_by_norm(model.parameters(), options.trainer.get("gradient_clip_val") or math.inf)
        with record_function("optimizer"):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return int(tokens)

    return Steps(options, model, loss, training.data, step)


def rate(overrides: list[str], steps: int, rounds: int) -> str:
    """The target tokens of a CPU second in each round over some batches."""
    options, _, _, data, step = prepare(overrides)
    chosen, rates = list(islice(batches(data, options.seed), steps)), []
    for _ in range(rounds):
        begin = process_time()
        tokens = sum(step(number, batch) for number, batch in enumerate(chosen))
        rates.append(tokens / (process_time() - begin))
    memory = f"{peak_memory() / 2**20:,.0f} MB at most"
    return f"{' '.join(f'{rate:,.0f}' for rate in rates)} target tokens per CPU second; {memory}"


def run(overrides: list[str], steps: int, out: Path) -> tuple[Table, Table, float, str]:
    """Profiles some steps after as many of warm-up; by part, by operator, milliseconds of a step, and what was run."""
    options, model, loss, data, step = prepare(overrides)
    chosen = list(islice(batches(data, options.seed), 2 * steps))
    for number, batch in enumerate(chosen[:steps]):
        step(number, batch)
    with recorded(model, loss), profile(activities=[ProfilerActivity.CPU]) as profiler:
        tokens = sum(step(number, batch) for number, batch in enumerate(chosen[steps:]))
    out.mkdir(parents=True, exist_ok=True)
    profiler.export_chrome_trace(str(out / "trace.json.gz"))
    events = profiler.key_averages()
    total = sum(event.self_cpu_time_total for event in events)
    by_part, by_operator = defaultdict(float), defaultdict(float)
    for event in events:
        if event.key in PARTS:
            by_part[event.key] += event.cpu_time_total
        else:
            by_operator[event.key] += event.self_cpu_time_total
    described = (
        f"{' '.join(overrides)}: {steps} steps of {tokens / steps:,.0f} target tokens, {options.trainer.precision}, "
        f"{torch.get_num_threads()} threads of {describe_machine()}"
    )
    tables = [
        [(name, time / steps / 1000, time / total) for name, time in sorted(times.items(), key=lambda item: -item[1])]
        for times in (by_part, by_operator)
    ]
    return tables[0], tables[1][:15], total / steps / 1000, described


def show(title: str, table: Table) -> str:
    """A Markdown table."""
    lines = [f"| {title} | ms a step | share |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {time:.1f} | {share:.0%} |" for name, time, share in table)])


def row(name: str, parts: Table, operators: Table, total: float) -> str:
    """A model in one row of a Markdown table: its step, the shares of the parts, the dearest operators."""
    shares = {part: share for part, _, share in parts}
    decoder = shares["start of the decoder"] + shares["decoder"]
    columns = (shares["encoder"], decoder, shares[FORWARD[-1]], shares["backward"], shares["optimizer"])
    dearest = ", ".join(f"{operator.removeprefix('aten::')} {share:.0%}" for operator, _, share in operators[:4])
    return f"| `{name}` | {total:.0f} | {' | '.join(f'{share:.0%}' for share in columns)} | {dearest} |"


def main() -> None:
    """Profile, print the tables and keep them beside the trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=5, help="profiled steps, after as many of warm-up")
    parser.add_argument("--rounds", type=int, default=0, help="rounds over the steps' batches to time instead")
    parser.add_argument("--out", type=Path, default=Path("logs/profile"), help="folder of trace.json.gz and profile.md")
    parser.add_argument("--models", nargs="+", default=[], help="several models of configs/model, in one table")
    parser.add_argument("overrides", nargs="*", help="options of src/train.py, as KEY=VALUE")
    options = parser.parse_args()
    overrides = options.overrides
    models = [name for name in options.models if "=" not in name]
    overrides += [name for name in options.models if "=" in name]  # what follows the models is no model
    if options.rounds:
        print(rate(overrides, options.steps, options.rounds))
    elif not models:
        parts, operators, total, described = run(overrides, options.steps, options.out)
        text = f"{described}; {total:.0f} ms a step\n\n{show('part', parts)}\n\n{show('operator itself', operators)}\n"
        (options.out / "profile.md").write_text(text, encoding="utf-8")
        print(f"{text}\ntrace: {options.out / 'trace.json.gz'}, for https://ui.perfetto.dev")
    if options.rounds or not models:
        return
    print("| model | ms a step | encoder | decoder | output and loss | backward | optimizer | dearest operators |")
    print("|---|---|---|---|---|---|---|---|")
    for name in models:
        parts, operators, total, _ = run([f"model={name}", *overrides], options.steps, options.out / name)
        print(row(name, parts, operators, total), flush=True)
    print(f"\n{describe_machine()}")


if __name__ == "__main__":
    main()
