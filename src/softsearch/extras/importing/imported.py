"""An imported model, and how it is written as a run folder."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from torch import Tensor

from softsearch.app.config.allowed_classes import name_of
from softsearch.app.config.build import described_model
from softsearch.data import UnbuiltSource
from softsearch.data.sentencepiece_file import kind_of
from softsearch.errors import CheckpointError, ConfigError
from softsearch.extras.importing.config_json import refuse_other_kind
from softsearch.files import new_folder, open_file
from softsearch.models import Embeddings, Seq2Seq, TransformerDecoder, TransformerEncoder
from softsearch.models.embeddings import Tie
from softsearch.text import SentencePieceTokenizer, TokenizerTrainer
from softsearch.training.checkpoints.checkpoint_contents import read_contents
from softsearch.training.checkpoints.folder import BEST, save_weights

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
                "_target_": name_of(UnbuiltSource),
                "src_lang": self.src_lang,
                "tgt_lang": self.tgt_lang,
                "refusal": _REFUSAL,
            },
            "tokenizer": {
                "_target_": name_of(TokenizerTrainer),
                "kind": kind_of(tgt.model, self.name),
                "vocab_size": tgt.vocab_size,
                "joint": src.model == tgt.model,
            },
        }
        try:
            with new_folder(run) as new:
                path = new / "checkpoints" / BEST
                save_weights(path, self.weights, config, (src, tgt))
                OmegaConf.save(OmegaConf.create(config), new / "config.yaml")
                return sum(weight.numel() for weight in described_model(read_contents(path)).weights())
        except (OSError, CheckpointError) as error:
            failed = error if isinstance(error, OSError) else error.__cause__
            if not isinstance(failed, OSError):
                raise
            raise CheckpointError(
                f"{run} could not be written ({failed.strerror or failed}), so nothing was written; free some space or "
                "choose another folder"
            ) from error


def transformer(tie: Tie, dim: int, encoder: dict[str, Any], decoder: dict[str, Any]) -> dict[str, Any]:
    """Returns the node ``model`` of a Transformer with these options."""
    return {
        "_target_": name_of(Seq2Seq),
        "embeddings": {"_target_": name_of(Embeddings), "_partial_": True, "dim": dim, "tie": tie},
        "encoder": {"_target_": name_of(TransformerEncoder), "_partial_": True, **encoder},
        "decoder": {"_target_": name_of(TransformerDecoder), "_partial_": True, **decoder},
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
