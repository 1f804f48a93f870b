"""Packages for Argos Translate and LibreTranslate (https://github.com/argosopentech/argos-translate).

A package is a zip archive of a folder with a CTranslate2 model, one SentencePiece model for source and target, and a
sentence splitter, which Argos Translate would otherwise download.
"""

import json
import tempfile
from pathlib import Path
from typing import ClassVar
from zipfile import ZIP_DEFLATED, ZipFile

from babel import Locale

from softsearch.errors import ConfigError
from softsearch.export import ExportFormat, ExportInputs, ExportSummary, Parity
from softsearch.extras.formats.ctranslate2 import export_ctranslate2
from softsearch.extras.formats.splitter import sentence_splitter
from softsearch.files import new_file
from softsearch.models import ManyLanguagesDecoder, Seq2Seq
from softsearch.search import StepFunction
from softsearch.text import Tokenizers

_VERSION = "1.11"  # the oldest Argos Translate that supports such splitters


class ArgosFormat(ExportFormat):
    """The package of a model for plain text without tags."""

    name: ClassVar[str] = "argos"

    def write(self, inputs: ExportInputs, out: Path) -> ExportSummary:
        """Writes the zip archive."""
        src, tgt = inputs.languages
        if inputs.text_form != "plain" or inputs.tags or not src or not tgt:
            raise ConfigError(
                f"format=argos needs a model for plain text without tags, and its languages; found {inputs.text_form} "
                f"text with {len(inputs.tags)} tags from {src!r} to {tgt!r}; train on such data, or use "
                "format=ctranslate2"
            )
        parity = export_argos(inputs.model, inputs.reference, inputs.tokenizers, inputs.languages, out)
        return ExportSummary(backend="CTranslate2", parity=parity)


def export_argos(
    model: Seq2Seq, reference: StepFunction, tokenizers: Tokenizers, languages: tuple[str, str], path: Path
) -> Parity:
    """Writes the package of a model for plain text; ``languages`` are the codes of source and target.

    Raises:
        ConfigError: CTranslate2 is not installed or does not support the model, the model reads tags of languages, or
            ``path`` exists.
        BundleError: the CTranslate2 model computes other numbers; nothing was written.
    """
    if path.exists():
        raise ConfigError(f"out={path} exists; choose a new file or remove it")
    if isinstance(model.decoder, ManyLanguagesDecoder):
        raise ConfigError("Argos Translate reads no tags of languages, which this model needs; use format=ctranslate2")
    names = (Locale("en").languages.get(code, code) for code in languages)
    metadata = {"package_version": "1.0", "argos_version": _VERSION, "type": "translate"}
    metadata |= dict(zip(("from_code", "to_code", "from_name", "to_name"), (*languages, *names), strict=True))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        parity = export_ctranslate2(model, reference, tokenizers, folder / "model")
        for spare in (folder / "model").glob("*.model"):
            spare.unlink()
        (folder / "sentencepiece.model").write_bytes(tokenizers[0].model)
        (folder / "metadata.json").write_text(json.dumps(metadata, indent=1))
        (folder / "minisbd").mkdir()
        (folder / "minisbd" / "rules.onnx").write_bytes(sentence_splitter())
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as file, ZipFile(file, "w", ZIP_DEFLATED) as archive:
            for each in sorted(folder.rglob("*")):
                archive.write(each, Path("translate-{}_{}".format(*languages), each.relative_to(folder)))
    return parity
