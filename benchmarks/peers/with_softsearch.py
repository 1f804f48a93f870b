"""softsearch's process of decode_recurrent.py: the model in PyTorch, or its bundle in ONNX Runtime, also in int8."""

import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from turns import EMBEDDING, HIDDEN, NO_EOS, SRC_TOKENS, STEPS, VOCAB, serve

from softsearch.app import build, composed
from softsearch.evaluation import TorchStepFunction
from softsearch.export import export_bundle
from softsearch.export.precision import lower_precision
from softsearch.models import Seq2Seq
from softsearch.runtime import Bundle, OnnxStepFunction
from softsearch.search import BeamSearch, Greedy, StepFunction
from softsearch.text import EOS, SPECIALS, train_tokenizer

SIZES = [
    f"model.embeddings.dim={EMBEDDING}", "model.embeddings.tie=none", f"model.encoder.hidden_dim={HIDDEN}",
    f"model.decoder.hidden_dim={HIDDEN}",
]  # fmt: skip
OWN_SIZES = {  # of what JoeyNMT has, and of what Marian has
    "rnnsearch": [f"model.decoder.attention.dim={HIDDEN}", f"model.decoder.readout.dim={HIDDEN}"],
    "nematus": [f"model.decoder.attention.dim={2 * HIDDEN}", f"model.decoder.readout.dim={EMBEDDING}"],
}
LIMITS = {"max_length_factor": 0.0, "max_length_offset": STEPS}


def make_model(name: str) -> Seq2Seq:
    """A model with random weights that never writes EOS."""
    config = composed("train", f"model={name}", *SIZES, *OWN_SIZES[name]).model
    torch.manual_seed(0)
    model: Seq2Seq = build(config, src_vocab_size=VOCAB, tgt_vocab_size=VOCAB)
    with torch.no_grad():
        model.decoder.output_projection.bias[EOS] = NO_EOS
    return model.eval()


def open_backend(name: str, backend: str, folder: Path) -> StepFunction:
    """The step function of PyTorch, or of a bundle that is written to a folder."""
    torch.set_num_threads(1)
    model = make_model(name)
    reference = TorchStepFunction(model)
    if backend == "torch":
        return reference
    words = train_tokenizer([f"w{i}" for i in range(VOCAB - len(SPECIALS))], kind="word", vocab_size=VOCAB)

    def int8(bundle: Bundle) -> tuple[dict[str, bytes], dict[str, object]]:
        src = [[len(SPECIALS) + (7 * i + 13 * j) % (VOCAB - 4) for j in range(SRC_TOKENS - 1)] for i in range(32)]
        return lower_precision(bundle, "int8", src, lambda _: 0.0)[0], {}

    lower = int8 if backend == "int8" else None
    bundle, _ = export_bundle(
        model, reference, (words, words), folder, search=Greedy(), max_src_tokens=100, facts={}, lower=lower
    )
    return OnnxStepFunction(bundle)


def main() -> None:
    """Decode with the model, the backend and the bundle's folder of the command line."""
    step_fn = open_backend(sys.argv[1], sys.argv[2], Path(sys.argv[3]))

    def decode(src: Sequence[list[int]], beam: int) -> int:
        search = Greedy(**LIMITS) if beam == 1 else BeamSearch(beam=beam, **LIMITS)
        found = search(step_fn, [[len(SPECIALS) + word for word in ids] for ids in src])
        return sum(len(best.tokens) for best, *_ in found)

    serve(decode)


if __name__ == "__main__":
    main()
