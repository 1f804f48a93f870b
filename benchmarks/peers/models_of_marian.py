"""Marian's part of import_marian.py: runs in the environment that setup_peer.sh makes.

It trains two small models and writes the scores that Marian gives a test set, and what its beam search finds for it.
"""

import sys
from pathlib import Path

from _pymarian import main as marian
from pymarian import Trainer, Translator

SIZES = "--type transformer --dim-emb 96 --transformer-heads 4 --transformer-dim-ffn 192 --tied-embeddings-all"
MODELS = {
    "transformer": "--enc-depth 2 --dec-depth 2",
    "student": "--enc-depth 4 --dec-depth 2 --transformer-decoder-autoreg rnn --dec-cell ssru "
    "--transformer-ffn-activation relu",
}
QUIET = "--cpu-threads 1 --workspace 500 --quiet"


def main() -> None:
    """Train and measure in the folder of the command line: folder, training files, test files, beam."""
    folder, src, tgt, test_src, test_tgt, beam = sys.argv[1:]
    for name, options in MODELS.items():
        home = Path(folder) / name
        home.mkdir(parents=True, exist_ok=True)
        vocabs = f"--vocabs {home}/vocab.spm {home}/vocab.spm"
        if not (home / "model.npz").exists():
            Trainer(
                f"{SIZES} {options} --train-sets {src} {tgt} {vocabs} --dim-vocabs 2000 2000 --model {home}/model.npz "
                f"--after 600u --mini-batch 32 --learn-rate 0.003 --lr-warmup 400u --clip-norm 1 --seed 7 {QUIET}"
            ).train()
        scores = home / "scores.txt"
        arguments = (
            f"score --model {home}/model.npz {vocabs} --train-sets {test_src} {test_tgt} --output {scores} {QUIET}"
        )
        marian(arguments.split())
        translator = Translator(
            f"--models {home}/model.npz {vocabs} --beam-size {beam} --normalize 1 --mini-batch 1 --n-best {QUIET}"
        )
        lines = Path(test_src).read_text(encoding="utf-8").splitlines()
        (home / "n_best.txt").write_text("\n".join(translator.translate(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
