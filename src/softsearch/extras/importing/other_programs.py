"""Names checkpoints of programs whose models are not imported, by the words in their pickles, which are not loaded."""

import zipfile
from contextlib import suppress
from pathlib import Path

from softsearch.errors import ConfigError
from softsearch.files import open_file

_MAX_BYTES = 4 << 20
_PROGRAMS = {  # words of their checkpoints; all of one of these
    "fairseq": ((b"fairseq",), (b"extra_state", b"optimizer_history")),
    "JoeyNMT": ((b"joeynmt",), (b"model_state", b"best_ckpt_score")),
    "OpenNMT-py": ((b"onmt",), (b"generator", b"model", b"vocab", b"opt")),
    "Lightning": ((b"pytorch-lightning_version",),),
}
_ADVICE = (
    "train a model on the same text (docs/coming-from.md has the options of other programs), or on the translations "
    "of that model (docs/recipes.md, knowledge distillation)"
)
_PUBLISHED = {"fairseq": "; M2M-100 and NLLB-200 are on Hugging Face in folders that are imported (docs/import.md)"}


def refuse_checkpoint(path: Path) -> None:
    """Refuses a checkpoint of PyTorch, with the program that wrote it if it is known.

    Raises:
        ConfigError: it is such a file.
    """
    words = b""
    with suppress(OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError):  # other kinds are named elsewhere
        words = _pickle_of(path)
    if words:
        program = next((name for name, kinds in _PROGRAMS.items() if any(_has(words, kind) for kind in kinds)), "")
        what = f"a checkpoint of {program}" if program else "a checkpoint of PyTorch"
        raise ConfigError(f"{path} is {what}, which cannot be imported; {_ADVICE}{_PUBLISHED.get(program, '')}")


def _has(words: bytes, kind: tuple[bytes, ...]) -> bool:
    return all(word in words for word in kind)


def _pickle_of(path: Path) -> bytes:
    """Returns the start of the pickle in a file of ``torch.save``; nothing for other files."""
    with open_file(path) as file:
        if file.peek(2)[:2] == b"\x80\2":  # as before PyTorch 1.6
            return file.read(_MAX_BYTES)
        if file.peek(2)[:2] != b"PK":
            return b""
        with zipfile.ZipFile(file) as archive:
            found = next((entry for entry in archive.infolist() if entry.filename.endswith("/data.pkl")), None)
            if found is None:
                return b""
            with archive.open(found) as pickle:
                return pickle.read(_MAX_BYTES)
