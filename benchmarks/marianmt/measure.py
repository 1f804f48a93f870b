"""MarianMT's side of train_speed.py: Hugging Face's Trainer, in an environment of its own (setup_peer.sh).

Trains a few steps of ``transformer_tiny``'s size on the text, pieces and vocabulary that JoeyNMT's side prepared, and
prints their figures as JSON. Batches have as many sentences as 4,096 target tokens have on average, of similar length.
"""

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import torch
from subword_nmt.apply_bpe import BPE
from torch.nn.utils.rnn import pad_sequence
from transformers import MarianConfig, MarianMTModel, Trainer, TrainerCallback, TrainingArguments

TOKENS, WARMUP = 4096, 5
UNK, PAD, BOS, EOS = range(4)
SIDE = {"layers": 4, "attention_heads": 4, "ffn_dim": 256}


def read(data: Path) -> list[dict[str, list[int]]]:
    """The training pairs as ids, each side with EOS."""
    vocab = {piece: i for i, piece in enumerate((data / "vocab").read_text(encoding="utf-8").splitlines())}
    with (data / "codes").open(encoding="utf-8") as codes:
        bpe = BPE(codes)
    sides = (
        [
            [*(vocab.get(piece, UNK) for piece in bpe.process_line(line).split()), EOS]
            for line in (data / f"train.{lang}").read_text(encoding="utf-8").splitlines()
        ]
        for lang in ("en", "de")
    )
    return [{"input_ids": src, "labels": tgt} for src, tgt in zip(*sides, strict=True)]


def collate(pairs: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
    """A batch as MarianMT takes it: -100 is padding of the labels, and the decoder reads them one position later."""
    src, tgt = ([torch.tensor(pair[key]) for pair in pairs] for key in ("input_ids", "labels"))
    tokens = pad_sequence(src, batch_first=True, padding_value=PAD)
    labels = pad_sequence(tgt, batch_first=True, padding_value=-100)
    read = torch.cat((torch.full((len(pairs), 1), BOS), labels[:, :-1].masked_fill(labels[:, :-1] < 0, PAD)), dim=1)
    return {"input_ids": tokens, "attention_mask": tokens != PAD, "decoder_input_ids": read, "labels": labels}


class Stopwatch(TrainerCallback):
    """Times the steps after the warm-up, from the batch to the end of the optimizer's step."""

    def __init__(self) -> None:
        self.began: list[float] = []
        self.ended: list[float] = []
        self.tokens: list[int] = []
        self.positions: list[int] = []

    def __call__(self, pairs: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        """Collates, and counts the target tokens of the batch."""
        batch = collate(pairs)
        self.tokens.append(int((batch["labels"] >= 0).sum()))
        self.positions.append(batch["labels"].numel())
        return batch

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """A step begins."""
        self.began.append(time.perf_counter())

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """A step ends."""
        self.ended.append(time.perf_counter())

    def figures(self) -> dict[str, float]:
        """Sums up; batches that were made ahead and not trained do not count."""
        steps = slice(WARMUP, len(self.ended))
        busy = sum(end - begin for begin, end in zip(self.began[steps], self.ended[steps], strict=True))
        tokens = sum(self.tokens[steps])
        return {
            "target_tokens_per_second": tokens / busy,
            "padding_efficiency": tokens / sum(self.positions[steps]),
            "share_outside": 1 - busy / (self.ended[-1] - self.began[WARMUP]),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def main() -> None:
    """Trains as the command line says and prints the figures as the last line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    pairs = read(options.data)
    vocab = len((options.data / "vocab").read_text(encoding="utf-8").splitlines())
    sizes: Any = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in SIDE.items()}
    model = MarianMTModel(
        MarianConfig(
            vocab_size=vocab, d_model=128, dropout=0.3, attention_dropout=0.0, activation_function="relu",
            pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=BOS, use_cache=False, **sizes,
        )
    )  # fmt: skip
    watch = Stopwatch()
    arguments = TrainingArguments(
        output_dir=str(options.out), max_steps=WARMUP + options.steps, use_cpu=True, bf16=options.bf16,
        per_device_train_batch_size=round(TOKENS * len(pairs) / sum(len(pair["labels"]) for pair in pairs)),
        train_sampling_strategy="group_by_length", learning_rate=0.005, warmup_steps=2000, adam_beta2=0.98,
        label_smoothing_factor=0.1, max_grad_norm=1.0, save_strategy="no", report_to="none", disable_tqdm=True,
        remove_unused_columns=False,
    )  # fmt: skip
    Trainer(model, arguments, data_collator=watch, train_dataset=pairs, callbacks=[watch]).train()
    print(json.dumps(watch.figures()))


if __name__ == "__main__":
    main()
