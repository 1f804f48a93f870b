"""Time and peak memory of LoRA steps on a large Transformer, with and without checkpoint_activations.

    python benchmarks/lora_memory.py                                          # 600 million parameters, 8 GB of memory
    python benchmarks/lora_memory.py --vocabulary 8000 --width 256 --layers 3 # a size for a try

Weights are random: neither time nor memory depends on them. Each way runs in a process of its own, whose peak of
resident memory is that of the process.
"""

import argparse
import resource
import subprocess
import sys
import time
from functools import partial

import torch
from torch.optim import Adam

from softsearch.app import build, composed
from softsearch.models import CrossEntropy, Seq2Seq
from softsearch.models.layers import recompute_activations
from softsearch.text import SPECIALS
from softsearch.training import LoRA, make_optimizer

SENTENCES, LENGTH = 4, 32


def measure(options: argparse.Namespace) -> str:
    """Trains; returns a row of the table."""
    torch.manual_seed(1)
    sizes = [f"model.{side}.num_layers={options.layers}" for side in ("encoder", "decoder")]
    sizes += [f"model.{side}.d_ff={4 * options.width}" for side in ("encoder", "decoder")]
    width = (f"model.embeddings.dim={options.width}", "model.embeddings.tie=all")
    node = composed("train", "model=transformer_base", *width, *sizes).model
    model: Seq2Seq = build(node, src_vocab_size=options.vocabulary, tgt_vocab_size=options.vocabulary).train()
    LoRA(rank=8, alpha=16).adapt(model)
    if options.recompute:
        recompute_activations(model)
    optimizer = make_optimizer(partial(Adam, lr=1e-3), model)
    src, tgt = torch.randint(len(SPECIALS), options.vocabulary, (2, SENTENCES, LENGTH))
    loss_of, seconds = CrossEntropy(), []
    for _ in range(options.steps):
        began = time.perf_counter()
        features = model.features(src, tgt[:, :-1]).flatten(0, 1)
        loss = loss_of(features, tgt[:, 1:].flatten(), model.decoder.output_projection).smoothed / len(features)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - began)
    every = list(model.parameters())
    trained = sum(p.numel() for p in every if p.requires_grad)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"| {str(options.recompute).lower()} | {sum(p.numel() for p in every):,} | {trained:,} "
        f"| {sorted(seconds)[len(seconds) // 2]:.2f} | {sum(seconds):.1f} | {peak:.2f} |"
    )


def main() -> None:
    """Prints a table with a row for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabulary", type=int, default=256_206)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=12, help="of the encoder, and as many of the decoder")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--recompute", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(measure(options))
        return
    columns = "checkpoint_activations", "parameters", "trained", "s/step (median)", "s in all", "peak GB"
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|", flush=True)
    for more in ((), ("--recompute",)):
        subprocess.run([sys.executable, *sys.argv, "--one", *more], check=True)


if __name__ == "__main__":
    main()
