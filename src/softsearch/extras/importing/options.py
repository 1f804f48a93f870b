"""Options of ``softsearch import``, which need no PyTorch."""

import argparse
from pathlib import Path

FAMILIES = (
    "a Hugging Face folder of a MarianMT model (config.json, weights, source.spm, target.spm, vocab.json) or of "
    "M2M-100 or NLLB-200 (sentencepiece.bpe.model instead), or a model of Marian (model.npz with its vocabularies)"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch import``."""
    parser.description = (
        "Make a run of a model that another program trained: it evaluates, exports and trains on like any other. "
        f"SOURCE is {FAMILIES}. Nothing in it is executed."
    )
    parser.add_argument("source", metavar="SOURCE", type=Path, help="folder or file of the model")
    parser.add_argument("--out", metavar="RUN", type=Path, required=True, help="new folder of the run")
    parser.add_argument("--src-lang", metavar="CODE", help="source language, if the source does not say it")
    parser.add_argument("--tgt-lang", metavar="CODE", help="target language, likewise")
    parser.add_argument(
        "--languages",
        metavar="CODE,CODE",
        type=lambda text: text.split(","),
        help="of a model of many languages, keep these and the pieces of their scripts",
    )
    parser.add_argument(
        "--text",
        metavar="FILE",
        type=Path,
        nargs="+",
        default=[],
        help="with --languages, keep the pieces of the text in these files, and the characters of the scripts",
    )
