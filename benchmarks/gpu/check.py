"""Checks a GPU against float64 on the CPU, model by model, and the lab's runs on it; writes a table.

Exits with 0 if all is right, 1 if something is not, 2 without a GPU. ``--device cpu`` runs the same checks there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import torch
from small import ROOT, Case, batch_of, cases, model_of, to_device

from softsearch.data import Batch
from softsearch.models import CrossEntropy, OutputLayer, Seq2Seq
from softsearch.training import TrainingMethod, TrainingStep, teacher_forcing
from softsearch.training.cuda_graphs import CudaGraphs

# The largest difference of a loss, and of all gradients together, relative to float64's. Float32 with TF32 has 10 bits
# of products, bfloat16 has 8 bits of everything that autocast casts.
TOLERANCES = {"float32": (1e-5, 1e-4), "tf32": (2e-3, 5e-2), "bf16-mixed": (2e-2, 1.5e-1)}
COMPILED = ("transformer_tiny-class_factored", "transformer_base-encoder.pre_norm=true-decoder.pre_norm=true")
SMALL = (
    "model=transformer_tiny", "model.embeddings.dim=32", "model.encoder.d_ff=64",
    "model.decoder.d_ff=64", "data.train_size=300", "data.val_size=20", "data.test_size=20", "tokenizer.vocab_size=120",
    "trainer.val_check_interval=4", "trainer.log_every_n_steps=2", "search=greedy", "search.max_length_factor=1",
)  # fmt: skip
RUNS = {
    "mixed precision, resumed": ("trainer=gpu", "trainer.precision=bf16-mixed"),
    "CUDA graphs": ("trainer=gpu", "cuda_graphs=true"),
    "compiled": ("trainer=gpu", "compile=true"),
    "DDP": ("trainer=ddp", "trainer.devices=1"),
    "FSDP": ("trainer=fsdp", "trainer.devices=1"),
}

Row = tuple[str, str, str, bool]  # check, of what, the finding, whether it is right
Computed = tuple[torch.Tensor, torch.Tensor]  # the loss of a token, and all gradients in one vector


def compute(model: Seq2Seq, batch: Batch, method: TrainingMethod = teacher_forcing) -> Computed:
    """Loss and gradients, copied to the CPU in float64."""
    model.zero_grad()
    loss, tokens = method(TrainingStep(model, CrossEntropy(), batch))
    value = loss.smoothed / tokens
    value.backward()
    gradients = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    return value.detach().cpu().double(), torch.cat(gradients).cpu().double()


def differences(found: Computed, expected: Computed) -> tuple[float, float]:
    """Relative differences of the loss, and of the gradients by their norms."""
    loss, gradient = ((f - e).norm() / e.norm() for f, e in zip(found, expected, strict=True))
    return float(loss), float(gradient)


def check_model(name: str, case: Case, device: torch.device, ways: list[str], *, compiled: bool) -> Iterator[Row]:
    """The rows of a model, of some ways or of all."""
    batch = batch_of(16, 12)
    expected = compute(model_of(case), batch)
    here, model = to_device(batch, device), model_of(case).float().to(device)
    graphs = (
        [] if isinstance(model.decoder.output_projection, OutputLayer) else ["float32, graphs", "bf16-mixed, graphs"]
    )
    for way in (*TOLERANCES, *graphs, *["float32, compiled", "float32, compiled, graphs"] * compiled):
        if ways and way not in ways:
            continue
        torch.set_float32_matmul_precision("high" if way == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = way == "tf32"
        if "compiled" in way:
            model.features = torch.compile(model.features, dynamic=True)  # type: ignore[method-assign]
        with torch.autocast(device.type, torch.bfloat16, enabled="bf16-mixed" in way):
            method = CudaGraphs(_padded) if "graphs" in way else teacher_forcing
            if "graphs" in way:  # the first step records, with other data than the one that is compared
                compute(model, to_device(batch_of(15, 12, seed=1), device), method)
            loss, gradient = differences(compute(model, here, method), expected)
        limits = TOLERANCES[way.partition(",")[0]]
        yield way, name, f"loss {loss:.1e}, gradients {gradient:.1e}", loss <= limits[0] and gradient <= limits[1]


def _padded(sentences: int, src_len: int, tgt_len: int) -> tuple[int, int, int]:
    """A static shape with some padding."""
    del sentences, src_len, tgt_len
    return 18, 16, 16


def check_run(name: str, options: tuple[str, ...], device: torch.device, folder: Path) -> Row:
    """A run of src/train.py, of four steps and then of eight, which continues it."""
    if device.type == "cpu":
        options = (*(option for option in options if not option.startswith("trainer=")), "trainer=cpu")
    places = (f"hydra.run.dir={folder / name.replace(' ', '_').replace(',', '')}", f"cache_dir={folder / 'cache'}")
    for steps in (4, 8):
        command = [
            sys.executable,
            "src/train.py",
            *SMALL,
            *options,
            *places,
            f"trainer.max_steps={steps}",
            "resume=auto",
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ.copy())
        if done.returncode:
            return "train.py", name, " ".join(done.stderr.split())[-200:], False
    metrics = json.loads((Path(places[0].partition("=")[2]) / "metrics.json").read_text(encoding="utf-8"))
    return (
        "train.py",
        name,
        f"{metrics['train/steps']:.0f} steps, loss {metrics['test/loss']:.2f}",
        (metrics["train/steps"] == 8 and metrics["test/loss"] < 100),
    )


def rows(device: torch.device, models: list[str], ways: list[str], runs: list[str]) -> Iterator[Row]:
    """All checks, one after the other; one that fails does not stop the others."""
    for name, case in cases(models).items():
        try:
            yield from check_model(name, case, device, ways, compiled=device.type == "cuda" and name in COMPILED)
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            yield "error", name, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}", False
    with tempfile.TemporaryDirectory() as folder:
        for name in runs:
            yield check_run(name, RUNS[name], device, Path(folder))


def main() -> None:
    """Prints the table as it grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--models", nargs="*", default=[], help="by default all")
    parser.add_argument("--only", nargs="*", default=[], help="ways to compute, as 'float32, graphs'; by default all")
    parser.add_argument("--runs", nargs="*", default=list(RUNS), choices=list(RUNS), help="by default all")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("there is no GPU that PyTorch can use; --device cpu runs the checks without one", file=sys.stderr)
        sys.exit(2)
    device, start, right = torch.device(options.device), perf_counter(), True
    print("| check | of | relative differences from float64 on the CPU | |\n|---|---|---|---|")
    for check, what, finding, holds in rows(device, options.models, options.only, options.runs):
        right &= holds
        print(f"| {check} | `{what}` | {finding} | {'ok' if holds else 'WRONG'} |", flush=True)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "the CPU"
    print(f"\n{name}, torch {torch.__version__}, {perf_counter() - start:.0f} s")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
