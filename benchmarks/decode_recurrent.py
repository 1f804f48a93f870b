"""Decoding speed of recurrent models on one thread, beside JoeyNMT and Marian, in interleaved rounds.

The sizes are the same and the weights random: embeddings of 256, a bidirectional GRU encoder of 512 units, a GRU
decoder of 512, 10,000 words. Every source has 16 tokens, EOS never wins, and each search takes exactly 24 steps, which
is checked. rnnsearch is compared with JoeyNMT's attentional GRU (additive attention, input feeding), nematus with
Marian's (a conditional GRU, as ours). Each system is a process of its own; ratios are taken within a round.

    benchmarks/setup_peer.sh joeynmt      # 2.3.0, in benchmarks/.joeynmt-venv
    benchmarks/setup_peer.sh pymarian     # 1.12.42, 604 MB, in benchmarks/.pymarian-venv
    python benchmarks/decode_recurrent.py
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peers.turns import STEPS

from softsearch.app import describe_machine

HERE = Path(__file__).resolve().parent
JOEY, MARIAN = (HERE / f".{name}-venv" / "bin" / "python" for name in ("joeynmt", "pymarian"))
MODES = {"batches of 32": (64, 32), "single": (8, 1)}  # sentences, and at a time


class Contender:
    """A process that decodes when it is asked to."""

    def __init__(self, python: Path, script: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [str(python), str(HERE / "peers" / script), *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )  # fmt: skip
        self._answer()

    def measure(self, sentences: int, batch: int, beam: int, clock: str) -> float:
        """Tokens per second."""
        assert self.process.stdin is not None
        print(sentences, batch, beam, file=self.process.stdin, flush=True)
        answer = self._answer()
        if answer["tokens"] != sentences * STEPS:
            raise SystemExit(f"{self.process.args} wrote {answer['tokens']} tokens, expected {sentences * STEPS}")
        return float(answer["tokens"] / answer[clock])

    def _answer(self) -> Any:
        """The next line that is JSON, because the libraries print too."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                return json.loads(line)
            except ValueError:
                continue
        raise SystemExit(f"{self.process.args} ended with exit status {self.process.wait()}")


def start(model: str, folder: Path) -> dict[str, Contender]:
    """The contenders of one model, the peer last."""
    ours = ("with_softsearch.py", model)
    contenders = {
        "softsearch (ONNX Runtime)": Contender(Path(sys.executable), *ours, "onnx", folder / model),
        "softsearch (int8)": Contender(Path(sys.executable), *ours, "int8", folder / f"{model}-int8"),
        "softsearch (PyTorch)": Contender(Path(sys.executable), *ours, "torch", folder / model),
    }
    if model == "rnnsearch":
        contenders["JoeyNMT"] = Contender(JOEY, "with_joeynmt.py", HERE / "joeynmt" / "c.yaml")
    else:
        contenders["Marian"] = Contender(MARIAN, "with_marian.py", folder / "marian")
    return contenders


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=("rnnsearch", "nematus"), default=["rnnsearch", "nematus"])
    parser.add_argument("--beams", nargs="+", type=int, default=[5, 1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=("seconds", "cpu"), default="seconds", help="cpu: on a busy machine")
    parser.add_argument("--folder", type=Path, default=HERE.parent / "logs" / "decode_recurrent")
    options = parser.parse_args()
    for model, python in {"rnnsearch": JOEY, "nematus": MARIAN}.items():
        if model in options.models and not python.exists():
            parser.error(f"{python} does not exist: run benchmarks/setup_peer.sh, or leave {model} out of --models")
    print(f"{describe_machine()}; tokens/s by {options.clock}, one thread")
    for model in options.models:
        contenders = start(model, options.folder)
        for mode, (sentences, batch) in MODES.items():
            for beam in options.beams:
                speeds: dict[str, list[float]] = {name: [] for name in contenders}
                for turn in range(options.rounds + 1):
                    for name, contender in contenders.items():
                        speed = contender.measure(sentences, batch, beam, options.clock)
                        speeds[name] += [speed] if turn else []  # the first warms up
                report(f"{model}, {mode}, beam {beam}", speeds)
        for contender in contenders.values():
            contender.process.kill()


def report(title: str, speeds: dict[str, list[float]]) -> None:
    """Print medians (least to most) and the ratios to the last contender."""
    print(title)
    *_, peer = speeds.values()
    for name, values in speeds.items():
        ratios = [own / other for own, other in zip(values, peer, strict=True)]
        print(
            f"    {name:26} {_spread(values, '9,.0f')} tokens/s, {_spread(ratios, '5.2f')} times the peer", flush=True
        )


def _spread(values: Sequence[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


if __name__ == "__main__":
    main()
