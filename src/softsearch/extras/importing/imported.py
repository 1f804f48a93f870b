"""An imported model, and how it is written as a run folder."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from softsearch import lab
from softsearch.data.parts import kind_of
from softsearch.errors import CheckpointError, ConfigError
from softsearch.extras.importing.config_json import refuse_other_kind
from softsearch.files import open_file
from softsearch.text import SentencePieceTokenizer

NEVER = -100.0  # bias of words that are never generated; e^-100 changes no sum, and smoothed losses stay readable
_MAX_BYTES = 2**26  # of a vocabulary; the largest published ones have 10 MB
_REFUSAL = "an imported model comes without text; name files: evaluate test='[x.en,x.de]', export val='[x.en,x.de]'"


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A model of another program, converted to our terms.

    Args:
        name: name of the family, for the run's config.
        model: the config's node ``model``.
        tokenizers: SentencePiece models of source and target, with our special pieces.
        weights: weights of the Seq2Seq by name, in float32.
        src_lang: code of the source language, or "".
        tgt_lang: code of the target language, or "".
        codes: the languages of a multilingual model.
        notes: notes to print for the user.
    """

    name: str
    model: dict[str, Any]
    tokenizers: tuple[bytes, bytes]
    weights: dict[str, Tensor]
    src_lang: str = ""
    tgt_lang: str = ""
    codes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def write(self, run: Path) -> int:
        """Writes the folder like that of a trained run, and returns the number of parameters.

        Raises:
            ConfigError: the folder exists.
            CheckpointError: the weights do not fit the model, or cannot be written; nothing was written.
        """
        if run.exists():
            raise ConfigError(f"--out {run} exists; choose a new folder, or remove it")
        src, tgt = map(SentencePieceTokenizer, self.tokenizers)
        config = {
            "name": self.name,
            "model": self.model,
            "data": {
                "_target_": "softsearch.data.UnbuiltSource",
                "src_lang": self.src_lang,
                "tgt_lang": self.tgt_lang,
                "refusal": _REFUSAL,
            },
            "tokenizer": {
                "_target_": "softsearch.text.TokenizerTrainer",
                "kind": kind_of(tgt.model, self.name),
                "vocab_size": tgt.vocab_size,
                "joint": src.model == tgt.model,
            },
        }
        return lab.save(run, self.weights, config, (src, tgt))


def transformer(tie: str, dim: int, encoder: dict[str, Any], decoder: dict[str, Any]) -> dict[str, Any]:
    """Returns the node ``model`` of a Transformer with these options."""
    return {
        "_target_": "softsearch.models.Seq2Seq",
        "embeddings": {"_target_": "softsearch.models.Embeddings", "_partial_": True, "dim": dim, "tie": tie},
        "encoder": {"_target_": "softsearch.models.TransformerEncoder", "_partial_": True, **encoder},
        "decoder": {"_target_": "softsearch.models.TransformerDecoder", "_partial_": True, **decoder},
    }


def read_bytes(path: Path, expected: str) -> bytes:
    """Reads the bytes of a vocabulary.

    Raises:
        CheckpointError: it cannot be read.
    """
    refuse_other_kind(path)
    try:
        with open_file(path) as file:
            return file.read(_MAX_BYTES)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}); expected {expected}") from error
