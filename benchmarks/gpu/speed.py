"""Training speed on a GPU: target tokens/s and model FLOP utilisation, beside Hugging Face's MarianMT of the same size.

A step is forward, backward, clipping and fused Adam in bfloat16, of one batch without padding, on weights in float32.
FLOPs are those of all products in a step, counted by PyTorch. MarianMT needs ``pip install transformers``.
Exits with 2 without a GPU. ``--device cpu --tiny`` only tries the program out.
"""

import argparse
import statistics
import sys
import traceback
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import torch
from small import to_device
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from softsearch.app import build, composed
from softsearch.data import Batch
from softsearch.models import CrossEntropy
from softsearch.text import BOS, EOS, PAD
from softsearch.training import TrainingStep, clip_by_norm, teacher_forcing
from softsearch.training.cuda_graphs import CudaGraphs

PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12}  # FLOP/s in bfloat16, dense, as sold
MODELS = {"transformer_base": True, "transformer_big": True, "rnnsearch_paper": False}  # whether MarianMT has its like
VOCAB, SENTENCES, LENGTH, ROUNDS, STEPS = 32_000, 512, 32, 5, 10
TINY = (100, 2, 5, 1, 1)
VARIANTS = ("plain", "graphs", "compiled", "graphs, compiled")  # compiled ones come last, as they take a minute

Step = Callable[[], Tensor]  # returns the loss of a token


def ours(name: str, batch: Batch, vocab: int, device: torch.device, variant: str) -> tuple[nn.Module, Step]:
    """A model of configs/model, and its loss."""
    node = composed("train", f"model={name}").model
    model = build(node, src_vocab_size=vocab, tgt_vocab_size=vocab).to(device).train()
    if "compiled" in variant:
        model.features = torch.compile(model.features, dynamic=True)
    loss = CrossEntropy()
    # The batch has no padding, as a batch of static shape without any.
    method = CudaGraphs(lambda *shape: shape) if "graphs" in variant else teacher_forcing

    def step() -> Tensor:
        summed, tokens = method(TrainingStep(model, loss, batch))
        return summed.smoothed / tokens

    return model, step


def marian(name: str, batch: Batch, vocab: int, device: torch.device) -> tuple[nn.Module, Step] | None:
    """MarianMT in the size of one of our Transformers, and its loss; None without the transformers library."""
    try:
        from transformers import MarianConfig, MarianMTModel
    except ImportError:
        return None
    width, heads, dropout = (1024, 16, 0.3) if name == "transformer_big" else (512, 8, 0.1)
    sides = {
        f"{side}_{key}": value
        for side in ("encoder", "decoder")
        for key, value in (("layers", 6), ("attention_heads", heads), ("ffn_dim", 4 * width))
    }
    config: Any = MarianConfig(
        vocab_size=vocab, d_model=width, dropout=dropout, attention_dropout=0.0, activation_function="relu",
        pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=BOS, use_cache=False, **sides,
    )  # fmt: skip
    model = MarianMTModel(config).to(device).train()
    read, targets = batch.tgt_tokens[:, :-1].contiguous(), batch.tgt_tokens[:, 1:].contiguous()
    mask = batch.src_tokens != PAD

    def step() -> Tensor:
        loss: Tensor = model(
            input_ids=batch.src_tokens, attention_mask=mask, decoder_input_ids=read, labels=targets
        ).loss
        return loss

    return model, step


def count_flops(loss: Step, device: torch.device) -> float:
    """The FLOPs of a step of a model that is not compiled: what counts them switches compiled code off."""
    with FlopCounterMode(display=False) as counter:
        with torch.autocast(device.type, torch.bfloat16):
            value = loss()
        value.backward()
    return counter.get_total_flops()


def measure(model: nn.Module, loss: Step, device: torch.device, rounds: int, steps: int) -> float:
    """Seconds of a step, the median over rounds."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16):
            value = loss()
        value.backward()
        clip_by_norm(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    def wait() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize()
        return perf_counter()

    for _ in range(3 if device.type == "cuda" else 1):  # compiles, and finds the fastest algorithms
        step()
    seconds = []
    for _ in range(rounds):
        start = wait()
        for _ in range(steps):
            step()
        seconds.append((wait() - start) / steps)
    return statistics.median(seconds)


def systems(names: list[str], variants: list[str]) -> Iterator[tuple[str, str]]:
    """The names of models and their variants, MarianMT after the first one; what takes long comes last."""
    for variant in variants:
        for name in names:
            if "compiled" not in variant or MODELS[name]:
                yield name, variant
            if variant == variants[0] and MODELS[name]:
                yield name, "MarianMT"


def main() -> None:
    """Prints the table as it grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument("--tiny", action="store_true", help="a batch of a few tokens")
    parser.add_argument("--peak", type=float, help="FLOP/s of the device, for one whose name is not known here")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("there is no GPU that PyTorch can use", file=sys.stderr)
        sys.exit(2)
    device = torch.device(options.device)
    vocab, sentences, length, rounds, steps = TINY if options.tiny else (VOCAB, SENTENCES, LENGTH, ROUNDS, STEPS)
    torch.set_float32_matmul_precision("high")  # as src/train.py does
    torch.manual_seed(0)
    src, tgt = (torch.randint(EOS + 5, vocab, (sentences, length + extra)) for extra in (0, 1))
    batch = Batch(src, tgt)
    batch = to_device(batch._replace(places=batch.target_places()), device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    peak = options.peak or next((flops for known, flops in PEAKS.items() if known in name), float("nan"))
    print("| system | target tokens/s | FLOPs of a step | utilisation |\n|---|---|---|---|")
    flops: dict[str, float] = {}
    for system, variant in systems(options.models, options.variants):
        label = system if variant == "plain" else f"{system}, {variant}"
        try:  # one that fails does not stop the others
            if variant == "MarianMT":
                made, counted = marian(system, batch, vocab, device), label
            else:
                made, counted = ours(system, batch, vocab, device, variant), system
            if made is None:
                print(f"| {label} | not measured: pip install transformers | | |", flush=True)
                continue
            if counted not in flops:
                whole = made if variant in ("plain", "MarianMT") else ours(system, batch, vocab, device, "plain")
                flops[counted] = count_flops(whole[1], device)
            seconds = measure(*made, device, rounds, steps)
            rate, share = sentences * length / seconds, flops[counted] / seconds / peak
            print(f"| {label} | {rate:,.0f} | {flops[counted]:.3g} | {share:.1%} |", flush=True)
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            print(f"| {label} | {type(error).__name__} | | |", flush=True)
        made = whole = None
        if device.type == "cuda":
            torch.cuda.empty_cache()
    print(f"\n{name}, torch {torch.__version__}, {sentences} pairs of {length} tokens, {vocab} pieces")


if __name__ == "__main__":
    main()
