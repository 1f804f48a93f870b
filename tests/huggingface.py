"""Random models of ``transformers`` in folders as they are published."""

import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
import torch

SIZES = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 20,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "max_position_embeddings": 64,
    "init_std": 0.3,
}


def train_spm(lines: Iterable[str], path: Path, kind: str) -> list[str]:
    """Writes a SentencePiece model, and returns its pieces of text."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type=kind, vocab_size=90, hard_vocab_limit=False,
        minloglevel=2,
    )  # fmt: skip
    path.write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [processor.id_to_piece(token) for token in range(3, processor.get_piece_size())]


def marian_folder(
    folder: Path,
    text: tuple[Sequence[str], Sequence[str]],
    *,
    seed: int = 0,
    kind: str = "unigram",
    tags: Sequence[str] = (),
    without: Sequence[str] = (),
    separate: bool = False,
    **options: Any,
) -> Any:
    """Writes a MarianMT with random weights everywhere and returns it.

    Args:
        folder: is made.
        text: lines of source and target, for the SentencePiece models.
        seed: of the weights.
        kind: of SentencePiece.
        tags: words of the vocabulary for languages.
        without: pieces that the vocabulary lacks.
        separate: a vocabulary for each side.
        options: of its config, besides SIZES.
    """
    from transformers import MarianConfig, MarianMTModel

    folder.mkdir()
    src, tgt = (
        train_spm(lines, folder / name, kind) for lines, name in zip(text, ("source.spm", "target.spm"), strict=True)
    )
    files = {"vocab.json": src, "target_vocab.json": tgt} if separate else {"vocab.json": [*src, *tgt]}
    sizes = []
    for name, pieces in files.items():
        others = ["▁other", "words"] if name == "target_vocab.json" else []
        words = ["</s>", "<unk>", *tags, *(p for p in dict.fromkeys(pieces) if p not in without), *others, "<pad>"]
        (folder / name).write_text(json.dumps({word: token for token, word in enumerate(words)}))
        sizes.append(len(words))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"source_lang": "en", "target_lang": "de", "separate_vocabs": separate})
    )
    pad, start = sizes[0] - 1, sizes[-1] - 1
    special = {"pad_token_id": pad, "decoder_start_token_id": start, "eos_token_id": 0, "forced_eos_token_id": None}
    torch.manual_seed(seed)
    config = MarianConfig(vocab_size=sizes[0], decoder_vocab_size=sizes[-1], **{**SIZES, **special, **options})
    return saved(MarianMTModel(config), folder)


def saved(model: Any, folder: Path) -> Any:
    """Gives every weight and bias a random part, writes the model and returns it."""
    model.eval()
    with torch.no_grad():
        for name, weight in (*model.named_parameters(), *model.named_buffers()):
            if "embed_positions" not in name and weight.is_floating_point():
                weight += 0.15 * torch.randn_like(weight)
        model.final_logits_bias[0, 0] += 4  # translations of all lengths end
    model.save_pretrained(folder)
    return model
