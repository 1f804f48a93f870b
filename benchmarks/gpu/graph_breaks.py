"""Lists what torch.compile makes of each model's features; runs on a CPU."""

import argparse
import collections
from typing import Any

import torch
from small import batch_of, cases, model_of
from torch._dynamo.testing import CompileCounter

LENGTHS = (5, 7, 9, 12)


def breaks(case: tuple[str, ...]) -> tuple[int, collections.Counter[str]]:
    """The graphs of a pass, and why they end."""
    torch._dynamo.reset()
    model, batch = model_of(case), batch_of(4, 9)
    found = torch._dynamo.explain(model.features)(batch.src_tokens, batch.tgt_tokens[:, :-1])
    return found.graph_count, collections.Counter(_short(reason) for reason in found.break_reasons)


def compilations(case: tuple[str, ...]) -> int:
    """How many graphs batches of four pairs of lengths take with dynamic shapes."""
    torch._dynamo.reset()
    counter = CompileCounter()
    model = model_of(case)
    compiled = torch.compile(model.features, backend=counter, dynamic=True)
    for seed, length in enumerate(LENGTHS):
        batch = batch_of(4 + seed, length, seed=seed)
        compiled(batch.src_tokens, batch.tgt_tokens[:, :-1])
    return counter.frame_count


def _short(reason: Any) -> str:
    where = reason.user_stack[-1]
    return f"{reason.reason.splitlines()[0][:80]} ({where.filename.rpartition('/')[2]}: `{where.line}`)"


def main() -> None:
    """Prints a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=[], help="by default all")
    chosen = cases(parser.parse_args().models)
    print(f"| model | graphs of a pass | of {len(LENGTHS)} batches | breaks |\n|---|---|---|---|")
    for name, case in chosen.items():
        try:
            graphs, why = breaks(case)
            reasons = "; ".join(f"{count} x {reason}" for reason, count in why.items()) or "none"
            print(f"| `{name}` | {graphs} | {compilations(case)} | {reasons} |", flush=True)
        except Exception as error:  # noqa: BLE001  # what PyTorch cannot trace is what the table is for
            print(f"| `{name}` | | | {type(error).__name__}: {str(error).splitlines()[0][:100]} |", flush=True)


if __name__ == "__main__":
    main()
