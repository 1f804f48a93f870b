"""JoeyNMT's side of train_speed.py; runs in its own environment (setup_peer.sh), which has JoeyNMT and subword-nmt.

``prepare`` turns Multi30k into JoeyNMT's files; ``train`` trains a few steps and prints their figures as JSON.
"""

import argparse
import gzip
import io
import json
import resource
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

MERGES = 10_000
SPECIALS = ("<unk>", "<pad>", "<s>", "</s>")
SPLITS = {"train": "train", "val": "val", "test": "test_2016_flickr"}


def prepare(root: Path, data: Path) -> None:
    """Write plain text, a joint BPE of 10,000 merges and its vocabulary, the way JoeyNMT reads them.

    Args:
        root: folder with Multi30k's lowercased and tokenised files, gzipped or plain.
        data: folder to write to; complete when it holds ``vocab``, which is written last.
    """
    from subword_nmt.apply_bpe import BPE
    from subword_nmt.learn_bpe import learn_bpe

    if (data / "vocab").is_file():
        return
    data.mkdir(parents=True, exist_ok=True)
    for name, source in SPLITS.items():
        for lang in ("en", "de"):
            (data / f"{name}.{lang}").write_text(_read(root, f"{source}.lc.tok.{lang}"), encoding="utf-8")
    both = "".join((data / f"train.{lang}").read_text(encoding="utf-8") for lang in ("en", "de"))
    codes = io.StringIO()
    learn_bpe(io.StringIO(both), codes, MERGES)
    (data / "codes").write_text(codes.getvalue(), encoding="utf-8")
    codes.seek(0)
    bpe = BPE(codes)
    pieces = Counter(piece for line in both.split("\n") for piece in bpe.process_line(line).split())
    (data / "vocab").write_text("\n".join([*SPECIALS, *(piece for piece, _ in pieces.most_common())]) + "\n", "utf-8")


def _read(root: Path, name: str) -> str:
    if (root / f"{name}.gz").is_file():
        return gzip.decompress((root / f"{name}.gz").read_bytes()).decode("utf-8")
    return (root / name).read_text(encoding="utf-8")


class Stopwatch:
    """Times JoeyNMT's training steps from the start of the forward pass to the end of the optimizer's step."""

    def __init__(self, warmup: int) -> None:
        self.warmup = warmup
        self.started: list[float] = []
        self.ended: list[float] = []
        self.tokens: list[int] = []
        self.positions: list[int] = []

    def attach(self, manager: type) -> None:
        """Wrap the step of JoeyNMT's TrainManager; the optimizer's step follows it and is seen by a hook."""
        train_step = manager._train_step

        def timed(trainer: Any, batch: Any) -> Any:
            if not self.started:
                trainer.optimizer.register_step_post_hook(lambda *_: self.ended.append(time.perf_counter()))
            self.tokens.append(int(batch.ntokens))
            self.positions.append(batch.trg.numel())
            self.started.append(time.perf_counter())
            return train_step(trainer, batch)

        manager._train_step = timed

    def figures(self) -> dict[str, float]:
        """Sum up the steps after the warm-up. Waiting for batches is no part of the speed, but of the share outside."""
        steps = slice(self.warmup, None)
        busy = sum(end - start for start, end in zip(self.started[steps], self.ended[steps], strict=True))
        wall = self.ended[-1] - self.started[self.warmup]
        tokens = sum(self.tokens[steps])
        return {
            "target_tokens_per_second": tokens / busy,
            "padding_efficiency": tokens / sum(self.positions[steps]),
            "share_outside": 1 - busy / wall,
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def train(config: Path, data: Path, out: Path, warmup: int, steps: int) -> dict[str, float]:
    """Train ``warmup + steps`` steps as ``joeynmt train`` does and return the figures of the last ``steps``."""
    from joeynmt.helpers import make_model_dir
    from joeynmt.training import TrainManager
    from joeynmt.training import train as joeynmt_train

    text = config.read_text(encoding="utf-8").replace("{data}", str(data)).replace("{out}", str(out))
    settings = yaml.safe_load(text)
    settings["training"]["updates"] = warmup + steps
    out.parent.mkdir(parents=True, exist_ok=True)
    make_model_dir(out, overwrite=True)
    watch = Stopwatch(warmup)
    watch.attach(TrainManager)
    joeynmt_train(rank=0, world_size=1, cfg=settings, skip_test=True)
    return watch.figures()


def main() -> None:
    """Read the command line and print the figures as the last line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    preparing = commands.add_parser("prepare")
    preparing.add_argument("--root", type=Path, required=True)
    preparing.add_argument("--data", type=Path, required=True)
    training = commands.add_parser("train")
    training.add_argument("--config", type=Path, required=True)
    training.add_argument("--data", type=Path, required=True)
    training.add_argument("--out", type=Path, required=True)
    training.add_argument("--warmup", type=int, default=5)
    training.add_argument("--steps", type=int, default=30)
    options = parser.parse_args()
    if options.command == "prepare":
        prepare(options.root, options.data)
    else:
        print(json.dumps(train(options.config, options.data, options.out, options.warmup, options.steps)))


if __name__ == "__main__":
    main()
