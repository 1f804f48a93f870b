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


def m2m_folder(
    folder: Path,
    text: Sequence[str],
    *,
    languages: Sequence[str] = ("eng_Latn", "deu_Latn", "fra_Latn"),
    legacy: bool = False,
    is_m2m: bool = False,
    kind: str = "bpe",
    seed: int = 0,
    **options: Any,
) -> tuple[Any, Any]:
    """Writes an M2M-100 or NLLB-200 with random weights everywhere; returns it and its tokenizer.

    Args:
        folder: is made.
        text: lines for the SentencePiece model.
        languages: of NLLB-200; M2M-100 has its own hundred.
        legacy: the source's language stands behind the source.
        is_m2m: with M2M-100's tokenizer, else NLLB-200's.
        kind: of SentencePiece.
        seed: of the weights.
        options: of its config, besides SIZES.
    """
    from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer, NllbTokenizer

    folder.mkdir()
    pieces = train_spm(text, spm := folder / "sentencepiece.bpe.model", kind)
    words = {word: token for token, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces])}
    if is_m2m:
        (folder / "vocab.json").write_text(json.dumps(words))
        tokenizer = M2M100Tokenizer(str(folder / "vocab.json"), str(spm), src_lang="en")
        size = len(words) + 100 + 8
    else:
        read = NllbTokenizer.from_pretrained(folder)
        state = json.loads(read.backend_tokenizer.to_str())
        tokenizer = NllbTokenizer(
            vocab=state["model"]["vocab"],
            merges=[tuple(merge) for merge in state["model"]["merges"]],
            _spm_precompiled_charsmap=None,
            extra_special_tokens=[*languages],
            legacy_behaviour=legacy,
            src_lang="eng_Latn",
        )
        tokenizer.backend_tokenizer.normalizer = read.backend_tokenizer.normalizer
        size = len(tokenizer) + 2
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    return saved(
        M2M100ForConditionalGeneration(M2M100Config(vocab_size=size, **{**SIZES, **options})), folder
    ), tokenizer


def saved(model: Any, folder: Path) -> Any:
    """Gives every weight and bias a random part, writes the model and returns it."""
    model.eval()
    with torch.no_grad():
        for name, weight in (*model.named_parameters(), *model.named_buffers()):
            if "embed_positions" not in name and weight.is_floating_point():
                weight += 0.15 * torch.randn_like(weight)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias[0, 0] += 4  # translations of all lengths end
        else:
            bias = model.model.decoder.layer_norm.bias
            model.lm_head.weight[2] += 5 * bias / bias.square().sum()
    model.save_pretrained(folder)
    return model
