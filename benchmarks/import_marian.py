"""Models that Marian has just trained, after ``softsearch import``: scores and translations beside Marian's own.

Marian's beam search is repeated here, because it is another one than ours: its beam shrinks with each hypothesis that
ends.

    benchmarks/setup_peer.sh pymarian      # 1.12.42, 604 MB, in benchmarks/.pymarian-venv
    python benchmarks/import_marian.py train.en train.de test.en test.de
"""

import argparse
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from softsearch import lab
from softsearch.evaluation import TorchStepFunction
from softsearch.extras.importing.command import read
from softsearch.search import BeamSearch, StepFunction, score_pairs
from softsearch.text import BOS, EOS, UNK

HERE = Path(__file__).resolve().parent
FACTOR = 3  # most target tokens for each source token


def shrinking_beam(step_fn: StepFunction, ids: Sequence[int], beam: int) -> tuple[float, list[int]]:
    """Marian's search: the score per token and the tokens of the best translation."""
    limit, state, tokens = FACTOR * (len(ids) + 1), step_fn.start([ids]), np.array([BOS])
    live, ended = [(0.0, list[int]())], list[tuple[float, list[int]]]()
    for length in range(1, limit + 1):
        found, state = step_fn.step(tokens, state, beam + 2)
        every = [
            (live[row][0] + float(log_prob), row, int(token))
            for row in range(len(live))
            for log_prob, token in zip(found.log_probs[row], found.tokens[row], strict=True)
            if token != UNK
        ]
        best = sorted(every, key=lambda one: -one[0])[: beam if length == 1 else len(live)]
        ended += [(log_prob / length, live[row][1]) for log_prob, row, token in best if token == EOS]
        best = [one for one in best if one[2] != EOS]
        live = [(log_prob, [*live[row][1], token]) for log_prob, row, token in best]
        if not live or length == limit:
            break
        state = step_fn.select(state, np.array([row for _, row, _ in best]))
        tokens = np.array([token for *_, token in best])
    return max([*ended, *((log_prob / limit, written) for log_prob, written in live)], key=lambda one: one[0])


def compare(folder: Path, test: Sequence[list[str]], beam: int) -> str:
    """What a model of Marian's and its import say of a test set."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    read(folder / "model.npz").write(folder / "run")
    run = lab.Run(folder / "run")
    step_fn = TorchStepFunction(run.model)
    src, tgt = ([t.encode(line) for line in lines] for t, lines in zip(run.tokenizers, test, strict=True))
    scores = [float(line) for line in (folder / "scores.txt").read_text().split()]
    ours = [pair.log_prob for pair in score_pairs(step_fn, src, tgt, batch_tokens=2000)]
    theirs: dict[int, tuple[str, float]] = {}
    for line in (folder / "n_best.txt").read_text(encoding="utf-8").splitlines():
        number, text, _, score = line.split(" ||| ")
        theirs.setdefault(int(number), (text, float(score)))
    decode = run.tokenizers[1].decode
    search = BeamSearch(beam=beam, banned=(UNK,), max_length_factor=FACTOR, max_length_offset=FACTOR)
    own = [decode(best.tokens) == theirs[index][0] for index, (best, *_) in enumerate(search(step_fn, src))]
    repeated = [shrinking_beam(step_fn, ids, beam) for ids in src]
    return (
        f"{len(src)} lines: log probabilities differ by at most {np.abs(np.subtract(scores, ours)).max():.1e}; "
        f"beam {beam}: {sum(decode(tokens) == theirs[i][0] for i, (_, tokens) in enumerate(repeated))} translations "
        f"are the same by Marian's search, with scores that differ by at most "
        f"{max(abs(score - theirs[i][1]) for i, (score, _) in enumerate(repeated)):.1e}, {sum(own)} by ours"
    )


def main() -> None:
    """Train with Marian, import, and print one line for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs=4, type=Path, metavar="FILE", help="training and test files, source and target")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=HERE.parent / "logs" / "import_marian")
    options = parser.parse_args()
    python = HERE / ".pymarian-venv" / "bin" / "python"
    command = [python, HERE / "peers" / "models_of_marian.py", options.folder, *options.texts, options.beam]
    subprocess.run([str(part) for part in command], check=True)
    test = [path.read_text(encoding="utf-8").splitlines() for path in options.texts[2:]]
    for model in sorted(options.folder.glob("*/model.npz")):
        print(f"{model.parent.name}, {compare(model.parent, test, options.beam)}")


if __name__ == "__main__":
    main()
