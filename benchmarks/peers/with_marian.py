"""Marian's process of decode_recurrent.py: runs in the environment that setup_peer.sh makes.

It reads and writes text, words that each are a token, as its bindings take nothing else.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pymarian import Trainer, Translator
from turns import EMBEDDING, HIDDEN, NO_EOS, SRC_TOKENS, STEPS, VOCAB, serve

WORDS = VOCAB - 2


def train(folder: Path) -> None:
    """Write a model that never writes EOS; Marian makes models by training only."""
    folder.mkdir(parents=True)
    names = ["</s>", "<unk>", *(f"w{i}" for i in range(WORDS))]
    (folder / "vocab.yml").write_text("".join(f"{name}: {i}\n" for i, name in enumerate(names)))
    (folder / "text").write_text("".join(f"w{i} w{i + 1}\n" for i in range(4)))
    Trainer(
        f"--type s2s --dim-emb {EMBEDDING} --dim-rnn {HIDDEN} --enc-cell gru --dec-cell gru --dec-cell-base-depth 2 "
        f"--train-sets {folder}/text {folder}/text --vocabs {folder}/vocab.yml {folder}/vocab.yml --after 1u "
        f"--model {folder}/trained.npz --cpu-threads 1 --mini-batch 4 --workspace 500 --seed 1 --quiet"
    ).train()
    weights = dict(np.load(folder / "trained.npz"))
    weights["decoder_ff_logit_l2_b"][0, 0] = NO_EOS
    np.savez(folder / "model.npz", **weights)


def main() -> None:
    """Decode with the model in the folder of the command line, which is made where there is none yet."""
    folder = Path(sys.argv[1])
    if not (folder / "model.npz").exists():
        train(folder)
    translators: dict[tuple[int, int], Translator] = {}

    def decode(src: Sequence[list[int]], beam: int) -> int:
        if (len(src), beam) not in translators:
            translators[len(src), beam] = Translator(
                f"--models {folder}/model.npz --vocabs {folder}/vocab.yml {folder}/vocab.yml --beam-size {beam} "
                f"--mini-batch {len(src)} --maxi-batch 1 --max-length-factor {STEPS / SRC_TOKENS} --normalize 1 "
                "--cpu-threads 1 --workspace 500 --quiet"
            )
        lines = [" ".join(f"w{word}" for word in ids) for ids in src]
        return sum(len(line.split()) for line in translators[len(src), beam].translate(lines))

    serve(decode)


if __name__ == "__main__":
    main()
