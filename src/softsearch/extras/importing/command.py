"""The command ``softsearch import SOURCE --out RUN``."""

import argparse
import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from softsearch.app import echo, quoted, shell_command
from softsearch.errors import CheckpointError, ConfigError, parsing
from softsearch.extras.importing import m2m, marian, marian_mt
from softsearch.extras.importing.config_json import CONFIG, Config, refuse_other_kind
from softsearch.extras.importing.imported import Imported
from softsearch.extras.importing.options import FAMILIES
from softsearch.extras.importing.other_programs import refuse_checkpoint
from softsearch.text.parts import nearest_language

_HUGGING_FACE = ("marian", "m2m_100")  # values of model_type


def import_model(options: argparse.Namespace) -> None:
    """Converts a model of another program and writes its run.

    Raises:
        SoftsearchError: the model cannot be read, or the run cannot be written.
    """
    logging.basicConfig(format="%(message)s")
    if options.text and not options.languages:
        raise ConfigError("--text needs --languages, those of the text; add for example --languages eng_Latn,deu_Latn")
    imported = read(options.source, options.languages or (), options.text)
    known = imported.codes
    for key in ("src_lang", "tgt_lang"):
        if known and (code := getattr(options, key)) is not None and code not in known:
            raise ConfigError(
                f"--{key.replace('_', '-')} is {code!r}, not a language of the model; {nearest_language(code, known)}"
            )
    given = {key: value for key in ("src_lang", "tgt_lang") if (value := getattr(options, key)) is not None}
    parameters = replace(imported, **given).write(options.out)
    for note in imported.notes:
        echo(f"note: {note}")
    paths = (f"ckpt={quoted(str(options.out))}", f"out={quoted(f'exports/{options.out.name}')}")
    echo(
        f"{imported.name} with {parameters:,} parameters: {options.out}\nnext: softsearch export {shell_command(paths)}"
    )


def read(source: Path, languages: Sequence[str] = (), text: Sequence[Path] = ()) -> Imported:
    """Reads a model from a folder or a file; a multilingual one is reduced to ``languages`` and the pieces in ``text``.

    Raises:
        ConfigError: its family is not supported.
        CheckpointError: it is damaged or an archive, or its weights do not match its config.
    """
    if not source.exists():
        if re.fullmatch(r"[\w.-]+/[\w.-]+", str(source)):  # like the name of a model on Hugging Face
            raise ConfigError(
                f"{source} does not exist here, and nothing is downloaded; if it is a model on Hugging Face, type: hf "
                f"download {source} --local-dir {source.name} && softsearch import {source.name} --out RUN"
            )
        raise ConfigError(f"{source} does not exist; expected {FAMILIES}")
    if source.is_file():
        refuse_checkpoint(source)
        refuse_other_kind(source, zip_is_fine=source.suffix == ".npz")
    with parsing(source, CheckpointError, "use another copy of it; docs/import.md lists the families"):
        imported = _read_hugging_face(source, languages, text) or marian.read(source)
    if imported is not None:
        return imported
    found = ", ".join(sorted(path.name for path in source.iterdir())[:8]) if source.is_dir() else "a file"
    raise ConfigError(f"{source} has {found or 'no files'}; expected {FAMILIES}; docs/import.md lists the families")


def _read_hugging_face(source: Path, languages: Sequence[str], text: Sequence[Path]) -> Imported | None:
    """Reads a model from a Hugging Face folder, by the family in ``config.json``; returns None for other sources.

    Raises:
        ConfigError: its architecture or an option is not supported.
        CheckpointError: a file is missing or damaged, or the files do not belong together.
    """
    if not (source / CONFIG).is_file():
        return None
    config = Config(source / CONFIG)
    family = config["model_type"]
    if not isinstance(family, str) or family not in _HUGGING_FACE:
        raise ConfigError(
            f"{config.path}: model_type is {family!r:.60}, expected {' or '.join(_HUGGING_FACE)}; docs/import.md lists "
            "the families that can be imported"
        )
    if family == "m2m_100":
        return m2m.read(source, config, languages, text)
    if languages:
        raise ConfigError(f"{config.path}: --languages works only with M2M-100 and NLLB-200, found {family}; remove it")
    return marian_mt.read(source, config)
