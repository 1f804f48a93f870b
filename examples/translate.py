"""Translates lines with a folder of export.py format=single, without softsearch.

pip install onnxruntime sentencepiece
python examples/translate.py exports/NAME-single < in.txt > out.txt
"""

import json
import sys
from pathlib import Path
from unicodedata import category

import numpy as np
from onnxruntime import InferenceSession
from sentencepiece import SentencePieceProcessor

folder = Path(sys.argv[1])
manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
files = manifest["tokenizers"]
src, tgt = (SentencePieceProcessor(model_file=str(folder / files[side])) for side in ("src", "tgt"))
session = InferenceSession(folder / "model.onnx")
options = {
    "beam": np.array(5),
    "n_best": np.array(1),
    "max_length": np.array([0]),
    "length_penalty": np.array(1, np.float32),
}
sys.stdout.reconfigure(encoding="utf-8", newline="\n")
for number, raw in enumerate(sys.stdin.buffer):
    # As softsearch translate: only a newline ends a line, and a blank line is a blank line of the output.
    text = raw.decode("utf-8" if number else "utf-8-sig").removesuffix("\n").removesuffix("\r").replace("\r", " ")
    ids = [*src.encode(text), src.eos_id()]
    if len(ids) == 1 or all(category(character) in ("Cc", "Cf", "Zs", "Zl", "Zp") for character in text):
        print(flush=True)
        continue
    tokens, lengths = session.run(["tokens", "lengths"], {"src_tokens": np.array([ids]), **options})
    print(*tgt.decode(tokens[0, 0, : lengths[0, 0]].tolist()).strip(" ").splitlines(), flush=True)
