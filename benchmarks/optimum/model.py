"""A MarianMT of OPUS-MT's size with random weights and tokenizers of real text, in a folder as they are published.

    python benchmarks/optimum/model.py train.en train.de FOLDER

For decode_speed.py --length, in which every translation has the same number of tokens: the weights do not matter.
"""

import json
import sys
from pathlib import Path

import sentencepiece
from transformers import MarianConfig, MarianMTModel

SIDE = {"layers": 6, "attention_heads": 8, "ffn_dim": 2048}


def train_pieces(text: str, model: Path) -> list[str]:
    """Writes a SentencePiece model of a side, and returns its pieces of text."""
    sentencepiece.SentencePieceTrainer.train(
        input=text, model_prefix=str(model), vocab_size=8000, hard_vocab_limit=False, minloglevel=2
    )
    model.with_suffix(".model").rename(model.with_suffix(".spm"))
    model.with_suffix(".vocab").unlink()
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model.with_suffix(".spm")))
    return [pieces.id_to_piece(token) for token in range(3, pieces.get_piece_size())]


if __name__ == "__main__":
    *sides, folder = sys.argv[1:]
    out = Path(folder)
    out.mkdir()
    found = [train_pieces(text, out / name) for text, name in zip(sides, ("source", "target"), strict=True)]
    words = ["</s>", "<unk>", *dict.fromkeys(piece for pieces in found for piece in pieces), "<pad>"]
    (out / "vocab.json").write_text(json.dumps({word: token for token, word in enumerate(words)}), encoding="utf-8")
    (out / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "de"}), encoding="utf-8")
    pad = len(words) - 1
    special = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "forced_eos_token_id": None}
    sizes = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in SIDE.items()}
    config = MarianConfig(
        vocab_size=len(words), d_model=512, max_position_embeddings=512, activation_function="swish",
        scale_embedding=True, **sizes, **special,
    )  # fmt: skip
    MarianMTModel(config).save_pretrained(out)
