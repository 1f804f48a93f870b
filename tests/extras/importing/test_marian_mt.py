"""An imported MarianMT is what ``transformers`` runs: logits, beam search and token ids."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from softsearch.app.config.build import rebuild_model
from softsearch.data.corpora.spellout import Spellout
from softsearch.data.dataset import pad
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.extras.importing import marian_mt
from softsearch.extras.importing.command import read
from softsearch.models.positions import sinusoids
from softsearch.search.beam import BeamSearch
from softsearch.text.vocabulary import BOS, EOS, PAD, UNK, language_tag
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents, read_contents
from tests.support.huggingface import marian_folder

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
CASES: dict[str, dict[str, Any]] = {
    "shared": {"activation_function": "swish", "scale_embedding": True},
    "separate": {"seed": 9, "separate": True, "share_encoder_decoder_embeddings": False, "activation_function": "relu"},
    "untied": {"tie_word_embeddings": False, "share_encoder_decoder_embeddings": False, "scale_embedding": True},
    "tags": {"tags": [">>fra<<", ">>deu<<"], "without": ["e", "▁the"], "bad_words_ids": [[2], [5]]},
    "bpe": {"kind": "bpe", "without": ["▁the"], "decoder_start_token_id": 0},
}
# Models named opus-mt-tc-big: wide, in half precision, and with one vocabulary. Few layers are enough here.
BIG: dict[str, Any] = {
    "d_model": 1024,
    "encoder_layers": 1,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "max_position_embeddings": 1024,
    "activation_function": "relu",
    "scale_embedding": True,
    "init_std": 0.02,
    "forced_eos_token_id": 0,
    "num_beams": 4,
    "dtype": torch.float16,
}
TC_BIG = {"tc-big": BIG, "tc-big-separate": {**BIG, "separate": True, "share_encoder_decoder_embeddings": False}}
Text = tuple[list[str], list[str]]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Text:
    pytest.importorskip("transformers")
    source = Spellout(train_size=400, val_size=10, test_size=10)
    src, tgt = source.files(tmp_path_factory.mktemp("text"))["train"]
    return src.read_text().splitlines(), tgt.read_text().splitlines()


class Both:
    """A model of ``transformers``, and the run that it became."""

    def __init__(self, folder: Path, text: Text, case: str) -> None:
        from transformers import MarianTokenizer

        options = dict({**CASES, **TC_BIG}[case])
        banned = options.pop("bad_words_ids", None)
        self.theirs, self.banned = marian_folder(folder, text, **{"seed": len(case), **options}), banned
        if "dtype" in options:
            self.theirs.half().save_pretrained(folder)
            self.theirs.float()
        if banned is not None:
            (folder / "generation_config.json").write_text(json.dumps({"bad_words_ids": banned}))
        self.src_tokenizer = MarianTokenizer.from_pretrained(folder)
        run = folder.with_suffix(".run")
        read(folder).write(run)
        self.contents: CheckpointContents = read_contents(run / "checkpoints" / "best.ckpt")
        self.ours = rebuild_model(self.contents)
        names = ("vocab.json", "target_vocab.json" if "separate" in options else "vocab.json")
        src_words, tgt_words = (json.loads((folder / name).read_text()) for name in names)
        config = json.loads((folder / "config.json").read_text())
        pad, start, eos = (config[key] for key in ("pad_token_id", "decoder_start_token_id", "eos_token_id"))
        self.rows = [  # of theirs, by our ids: PAD, UNK, BOS, EOS and the pieces
            [pad, src_words["<unk>"], pad, eos, *marian_mt.source_pieces(folder / "source.spm", src_words)[1]],
            [
                *(tgt_words["<pad>"], tgt_words["<unk>"], start, eos),
                *marian_mt.target_pieces(folder / "target.spm", tgt_words)[1],
            ],
        ]
        self.has_unknown_pieces = "without" in options
        self.prefix = ">>fra<< " if "tags" in options else ""

    def logits(self, src: Sequence[str], tgt: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Ours and theirs of real tokens, without BOS, by our ids."""
        src_ids, tgt_ids = (
            [np.array(tokenizer.encode(line)[:30]) for line in lines]
            for tokenizer, lines in zip(self.contents.tokenizers, (src, tgt), strict=True)
        )
        src_tokens, tgt_tokens = pad(src_ids), pad(tgt_ids, bos=True)
        their_src, their_tgt = (
            torch.tensor(rows)[tokens] for rows, tokens in zip(self.rows, (src_tokens, tgt_tokens), strict=True)
        )
        with torch.no_grad():
            ours = self.ours(src_tokens, tgt_tokens)
            theirs = self.theirs(their_src, (src_tokens != PAD).long(), decoder_input_ids=their_tgt).logits
        kept = [token for token, row in enumerate(self.rows[1]) if token != BOS and [row] not in (self.banned or [])]
        real = tgt_tokens != PAD
        return ours[real][:, kept], theirs[real][:, self.rows[1]][:, kept]


@pytest.fixture(
    scope="module",
    params=[pytest.param(case, marks=[pytest.mark.day] * (case in ("separate", "shared"))) for case in CASES],
)
def both(request: pytest.FixtureRequest, text: Text, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(tmp_path_factory.mktemp("marian") / "model", text, request.param)


def set_positions(both: Both) -> None:
    """Gives theirs the sinusoids that ours computes, in float64."""
    for side in (both.theirs.model.encoder, both.theirs.model.decoder):
        rows, dim = side.embed_positions.weight.shape
        side.embed_positions.weight.data = sinusoids(torch.arange(rows), dim, "sinusoidal_halves").double()


def test_logits_are_equal(both: Both, text: Text) -> None:
    lines = [both.prefix + line for line in text[0][:20]]
    both.ours.double(), both.theirs.double()
    torch.testing.assert_close(*both.logits(lines, text[1][:20]), rtol=0, atol=1e-5)  # of sinusoids in float32
    set_positions(both)
    torch.testing.assert_close(*both.logits(lines, text[1][:20]), rtol=0, atol=1e-12)
    both.ours.float(), both.theirs.float()


def test_translations_begin_with_the_start_of_the_config(both: Both) -> None:
    config = both.theirs.config
    ids = [PAD, UNK, BOS, EOS]
    tgt = both.theirs.model.decoder.embed_tokens.weight[config.decoder_start_token_id]
    assert torch.equal(both.ours.decoder.embedding.weight[BOS], tgt.to(both.ours.decoder.embedding.weight.dtype))
    for side, rows in zip((both.ours.encoder, both.ours.decoder), both.rows, strict=True):
        theirs = both.theirs.model.encoder if side is both.ours.encoder else both.theirs.model.decoder
        assert torch.equal(side.embedding.weight[ids], theirs.embed_tokens.weight[rows[: len(ids)]])


def beams(both: Both, lines: Sequence[str], limit: int) -> list[tuple[list[int], list[int]]]:
    """Ours and theirs, without those at the limit, where EOS may be forced.

    There, ours returns what has ended first, whatever its score is.
    """
    batch = both.src_tokenizer(lines, return_tensors="pt", padding=True)
    options = {"bad_words_ids": both.banned, "renormalize_logits": True, "forced_eos_token_id": None}
    theirs = both.theirs.generate(**batch, num_beams=5, early_stopping=True, max_new_tokens=limit, **options)
    search = BeamSearch(beam=5, max_length_factor=0.0, max_length_offset=limit)
    ours = search(TorchStepFunction(both.ours), [both.contents.tokenizers[0].encode(line) for line in lines])
    found = [[both.rows[1][token] for token in best.tokens] for (best,) in ours]
    eos = both.theirs.config.eos_token_id
    expected = [row[1 : (*row, eos).index(eos, 1)] for row in theirs.tolist()]
    return [(a, b) for a, b in zip(found, expected, strict=True) if len(a) == limit or len(b) < limit - 1]


def test_a_beam_finds_the_same_translations(both: Both, text: Text) -> None:
    pairs = beams(both, [both.prefix + line for line in text[0][:25]], 60)
    assert len(pairs) > 20
    assert sum(len(b) < 60 for _, b in pairs) > 5
    assert [a for a, _ in pairs] == [b for _, b in pairs]


def test_lines_have_the_same_ids(both: Both, text: Text) -> None:
    odd = ["", " two  spaces ", "unknown ☃☃", "ß and ü", "tab\tand é", "in the >> middle <<"]
    for side, key in enumerate(["text", "text_target"][: 1 if both.has_unknown_pieces else 2]):
        for line in text[side] + odd:
            line = both.prefix * (side == 0) + line
            found = [both.rows[side][token] for token in both.contents.tokenizers[side].encode(line)]
            assert found == both.src_tokenizer(**{key: line})["input_ids"][:-1], line


def test_a_tag_is_also_that_of_multilingual_data(both: Both) -> None:
    if both.prefix:
        src = both.contents.tokenizers[0]
        ids = [src.encode(f"{tag} one") for tag in (">>fra<<", language_tag("fra"))]
        assert [both.rows[0][token] for token in ids[0]] == [both.rows[0][token] for token in ids[1]]


@pytest.mark.day
@pytest.mark.parametrize("case", TC_BIG)
def test_a_wide_model_in_half_precision(case: str, text: Text, tmp_path: Path) -> None:
    both = Both(tmp_path / "model", text, case)
    both.ours.double(), both.theirs.double()
    set_positions(both)
    torch.testing.assert_close(*both.logits(text[0][:5], text[1][:5]), rtol=0, atol=1e-9)
    both.ours.float(), both.theirs.float()
    pairs = beams(both, text[0][:12], 30)
    assert len(pairs) > 3
    assert [a for a, _ in pairs] == [b for _, b in pairs]
