"""JoeyNMT's process of decode_recurrent.py: runs in the environment that setup_peer.sh makes."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import torch
import yaml
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary
from turns import STEPS, VOCAB, serve

SPECIALS = 4


def main() -> None:
    """Decode with the sizes of the configuration on the command line."""
    config = yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8"))
    symbols = SimpleNamespace(**config["data"]["special_symbols"], lang_tags=[], sep_token=None, sep_id=None)
    vocabulary = Vocabulary([f"w{i}" for i in range(VOCAB - SPECIALS)], symbols)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = build_model(config["model"], vocabulary, vocabulary).eval()
    cpu = torch.device("cpu")

    def decode(src: Sequence[list[int]], beam: int) -> int:
        ids = torch.tensor([[SPECIALS + word for word in sentence] + [symbols.eos_id] for sentence in src])
        lengths = torch.full((len(src),), ids.shape[1])
        batch = Batch(
            ids, lengths, None, None, None, torch.arange(len(src)), cpu, symbols.pad_id, symbols.eos_id, is_train=False
        )
        found, _, _ = search(model, batch, STEPS, beam, config["testing"]["beam_alpha"], min_output_length=STEPS)
        return int((found != symbols.pad_id).sum())

    serve(decode)


if __name__ == "__main__":
    main()
