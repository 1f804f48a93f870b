"""The ``softsearch`` command: translate lines and verify bundles, without torch.

Exit codes: 0 done, 1 an error with its message on standard error, 2 wrong usage, 143 terminated.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import softsearch
from softsearch.errors import SoftsearchError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    arguments = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        arguments.run(arguments)
    except SoftsearchError as error:
        return _fail(str(error))
    except BrokenPipeError:
        _silence_output()  # the reader has all it wanted
        return 0
    except OSError as error:
        _silence_output()
        return _fail(f"{error.filename or 'standard output'}: {error.strerror}; make room or choose another file")
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def _translate(arguments: argparse.Namespace) -> None:
    # Imported here: --help and usage errors need not wait for ONNX Runtime.
    from softsearch.runtime.streaming import StreamOptions, translate_stream
    from softsearch.runtime.translator import BATCH_TOKENS, Translator

    translator = Translator(
        arguments.bundle,
        beam=arguments.beam,
        n_best=arguments.n_best or 1,
        max_length=arguments.max_length,
        batch_tokens=arguments.batch_tokens or BATCH_TOKENS,
        threads=arguments.threads,
        alignments=arguments.alignments is not None,
    )
    translate_stream(
        translator,
        StreamOptions(arguments.input, arguments.output, arguments.alignments, n_best=arguments.n_best is not None),
    )


def _verify(arguments: argparse.Namespace) -> None:
    from softsearch.runtime.bundle import Bundle
    from softsearch.runtime.translator import Translator

    bundle = Bundle.open(arguments.bundle)
    Translator(bundle, max_length=2).translate(["."])
    manifest = bundle.manifest
    for name, entry in manifest.files.items():
        print(f"{entry.sha256}  {entry.size:>12,} bytes  {name}")
    print(
        f"{arguments.bundle}: OK, written by softsearch {manifest.softsearch_version}, vocabularies "
        f"{manifest.src_vocab_size:,} and {manifest.tgt_vocab_size:,}, {manifest.max_src_tokens} tokens a sentence"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="softsearch", description="Translate with an exported bundle.")
    parser.add_argument("--version", action="version", version=f"softsearch {softsearch.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    translate = commands.add_parser(
        "translate", help="translate lines", description="Translate standard input line by line to standard output."
    )
    translate.add_argument("bundle", type=Path, metavar="BUNDLE", help="folder of an exported bundle")
    translate.add_argument("--input", type=Path, metavar="FILE", help="read this file (default: standard input)")
    translate.add_argument("--output", type=Path, metavar="FILE", help="write this file (default: standard output)")
    translate.add_argument(
        "--beam", type=_positive, metavar="N", help="hypotheses per sentence (default: the bundle's)"
    )
    translate.add_argument(
        "--n-best", type=_positive, metavar="N", help="write up to N translations a line, as `line ||| text ||| score`"
    )
    translate.add_argument(
        "--alignments", type=Path, metavar="FILE", help="write the attention weights to this file as JSON lines"
    )
    translate.add_argument(
        "--max-length", type=_positive, metavar="N", help="most target tokens a sentence (default: the bundle's rule)"
    )
    translate.add_argument("--batch-tokens", type=_positive, metavar="N", help="most source tokens at once")
    translate.add_argument("--threads", type=_positive, metavar="N", help="batches side by side (default: all cores)")
    translate.set_defaults(run=_translate)

    verify = commands.add_parser(
        "verify", help="check a bundle", description="Check every byte of a bundle, load it and translate one token."
    )
    verify.add_argument("bundle", type=Path, metavar="BUNDLE", help="folder of an exported bundle")
    verify.set_defaults(run=_verify)
    return parser


def _positive(text: str) -> int:
    value = int(text) if text.isascii() and text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def _terminate(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + signal.SIGTERM)


def _silence_output() -> None:
    """What Python flushes when it exits must not raise a second time."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> int:
    print(f"softsearch: error: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
