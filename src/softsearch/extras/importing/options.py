"""Options of ``softsearch import``, without importing PyTorch."""

import argparse
from pathlib import Path

FAMILIES = (
    "a Hugging Face folder of a MarianMT model (config.json, weights, source.spm, target.spm, vocab.json) or of "
    "M2M-100 or NLLB-200 (sentencepiece.bpe.model instead), or a Marian model (model.npz with its vocabularies)"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch import``."""
    parser.description = (
        "Convert a model trained by another program to a run, which can be evaluated, exported and trained further "
        f"like any other. SOURCE is {FAMILIES}. Nothing in it is executed."
    )
    parser.add_argument("source", metavar="SOURCE", type=Path, help="folder or file of the model")
    parser.add_argument("--out", metavar="RUN", type=Path, required=True, help="new folder of the run")
    parser.add_argument("--src-lang", metavar="CODE", help="source language, if SOURCE does not name it")
    parser.add_argument("--tgt-lang", metavar="CODE", help="target language, if SOURCE does not name it")
    parser.add_argument(
        "--languages",
        metavar="CODE,CODE",
        type=lambda text: text.split(","),
        help="for a multilingual model: keep only these languages and the pieces of their scripts",
    )
    parser.add_argument(
        "--text",
        metavar="FILE",
        type=Path,
        nargs="+",
        default=[],
        help="with --languages: keep only the pieces of the text in these files, and the characters of the scripts",
    )
