"""Memory and time of training steps with a target vocabulary of 500,000 words, sampled softmax against the full one.

Each row is a process of its own that trains RNNsearch, as ``configs/model/rnnsearch.yaml`` has it but with an own
source vocabulary of 8,000, on random sentences whose words are spread as in text (the n-th word is 1/n as frequent).
The peak is that of training, without the libraries and the building of the model; Linux only.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from softsearch.app import build, composed
from softsearch.text import SPECIALS
from softsearch.training import clip_by_norm

SRC_VOCAB, TGT_LEN = 8_000, 16
ROWS = (  # name, has the large vocabulary, choices of config groups, sparse gradients
    ("small, full softmax, Adam", False, ("loss=cross_entropy", "optimizer=adam"), False),
    ("full softmax, Adam", True, ("loss=cross_entropy", "optimizer=adam"), False),
    ("sampled softmax, Adam", True, ("loss=sampled_softmax", "optimizer=adam"), False),
    ("sampled softmax, rows, lazy Adam", True, ("loss=sampled_softmax", "optimizer=lazy_adam"), True),
    ("sampled softmax, rows, SGD", True, ("loss=sampled_softmax", "optimizer=sgd", "optimizer.fused=false"), True),
)


def measure(row: int, *, vocab: int, tokens: int, steps: int, tau: int) -> dict[str, float]:
    """Train a few steps in this process; sizes in MB, time in CPU seconds, which other processes do not change."""
    _, large, choices, sparse = ROWS[row]
    overrides = ["model=rnnsearch", "model.embeddings.tie=output", *choices, f"+model.embeddings.sparse={sparse}"]
    config = composed("train", *overrides, *([f"loss.tau={tau}"] if "loss=sampled_softmax" in choices else []))
    before = _peak()
    torch.manual_seed(0)
    size = vocab if large else SRC_VOCAB
    model, loss = build(config.model, src_vocab_size=SRC_VOCAB, tgt_vocab_size=size), build(config.loss)
    optimizer = build(config.optimizer)(model.parameters())
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak of building
    rng, started = np.random.default_rng(0), 0.0
    for step in range(steps + 1):
        if step == 1:  # the first one also allocates the moments
            started = time.process_time()
        src, tgt = (_words(rng, tokens // TGT_LEN, n) for n in (SRC_VOCAB, size))
        optimizer.zero_grad()
        features = model.features(src, tgt[:, :-1]).flatten(0, 1)
        (loss(features, tgt[:, 1:].flatten(), model.decoder.output_projection).smoothed / tokens).backward()
        clip_by_norm(model.parameters(), 1.0)
        optimizer.step()
    seconds = (time.process_time() - started) / steps
    weights = sum(p.numel() for p in model.parameters()) * 4 / 1e6
    moments = sum(t.numel() for s in optimizer.state.values() for t in s.values() if isinstance(t, Tensor)) * 4 / 1e6
    peak = _peak() - before
    return {"weights": weights, "moments": moments, "peak": peak, "rest": peak - weights - moments, "seconds": seconds}


def _words(rng: np.random.Generator, sentences: int, vocab: int) -> Tensor:
    """Random ids, log-uniform, ``[sentences, TGT_LEN + 1]``."""
    ids = np.exp(rng.uniform(np.log(len(SPECIALS)), np.log(vocab), (sentences, TGT_LEN + 1)))
    return torch.from_numpy(ids.astype(np.int64))


def _peak() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", type=int, default=500_000, help="target words")
    parser.add_argument("--tokens", type=int, default=512, help="target tokens a batch")
    parser.add_argument("--steps", type=int, default=2, help="steps measured, after one that is not")
    parser.add_argument("--tau", type=int, default=15_000, help="words that the sampled softmax looks at")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)  # what a process of its own is told to measure
    return parser.parse_args()


def main() -> None:
    """Measure each row in a process of its own and print the table."""
    options = parse_options()
    torch.set_num_threads(options.threads)
    if options.row is not None:
        sizes = {name: getattr(options, name) for name in ("vocab", "tokens", "steps", "tau")}
        print(json.dumps(measure(options.row, **sizes)))
        return
    print(f"{options.vocab:,} target words, {options.tokens} tokens a batch, tau {options.tau:,}; sizes in MB")
    print(f"{'':34s} {'weights':>8s} {'moments':>8s} {'peak':>8s} {'all else':>9s} {'CPU s/step':>11s}")
    for row, (name, *_) in enumerate(ROWS):
        command = [sys.executable, str(Path(__file__)), *sys.argv[1:], f"--row={row}"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
        )
        if done.returncode:
            raise SystemExit(f"large_vocabulary: {name}: exit status {done.returncode}\n{done.stderr[-2000:]}")
        found = json.loads(done.stdout.splitlines()[-1])
        sizes = f"{found['weights']:8,.0f} {found['moments']:8,.0f} {found['peak']:8,.0f} {found['rest']:9,.0f}"
        print(f"{name:34s} {sizes} {found['seconds']:11.2f}", flush=True)


if __name__ == "__main__":
    main()
