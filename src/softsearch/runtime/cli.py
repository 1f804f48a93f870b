"""Command line of the runtime, without torch: translate, score and serve, verify bundles and write a site.

Exit codes: 0 success, 1 an error with its message on standard error, 2 wrong usage, 130 interrupted, 143 terminated.
"""

import argparse
import hashlib
import os
import shlex
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import softsearch
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.extras.serve.command import serve
from softsearch.extras.serve.settings import add_serve_options
from softsearch.runtime.arguments import (
    Parser,
    add_options,
    add_translate_options,
    check_translate_options,
    describe_options,
    search_keywords,
    text_among,
    with_flags,
)
from softsearch.runtime.bundle import Bundle, has_shortlist, open_shortlist
from softsearch.runtime.completion import LAB, bash_completion
from softsearch.runtime.manifest import SINGLE
from softsearch.runtime.options import expand_names, nearest

if TYPE_CHECKING:
    pass

_ABOUT = (
    "Train, evaluate and deploy translation models.\n\n"
    "The lab's commands (pip install 'softsearch[lab]') take key=value options, which --help explains:\n"
    + "".join(f"  {name:12}{text[0].lower()}{text[1:]}\n" for name, text in LAB.items())
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    if sys.stderr is None:  # closed; print would write to standard output
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - open as long as the process
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored, as in background jobs
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        try:
            arguments = _parse(list(sys.argv[1:] if argv is None else argv))
            arguments.run(arguments)
        finally:
            _flush_output()  # before Python does, which would report an error with a traceback
    except SoftsearchError as error:
        message, code = str(error), error.exit_code
        if isinstance(error, ConfigError):
            message = with_flags(message)
    except BrokenPipeError:
        return 0  # the reader needs no more
    except OSError as error:
        message, code = f"{error.filename or 'standard output'}: {error.strerror}; make room or choose another file", 1
    else:
        return 0
    print(f"softsearch: error: {message}", file=sys.stderr)
    return code


def _translate(arguments: argparse.Namespace) -> None:
    arguments.bundles, text = text_among(arguments.bundles)
    bundles = [Bundle.open(path) for path in arguments.bundles]
    arguments.search = arguments.search or ("rerank" if arguments.rescore else bundles[0].manifest.search_kind)
    check_translate_options(arguments.parser, arguments)
    # Imported here, because --help and usage errors need not wait for ONNX Runtime.
    from softsearch.runtime.prompt import Prompt, is_wanted
    from softsearch.runtime.streaming import Files, translate_stream
    from softsearch.runtime.translator import Translator
    from softsearch.text.word_dictionary import read_dictionary

    language_model = None if arguments.lm is None else Bundle.open(arguments.lm)
    rescorers = [Bundle.open(path) for path in arguments.rescore]
    options = search_keywords(arguments) | {"search": arguments.search}
    if arguments.paragraphs:
        options["paragraphs"] = True
    if arguments.banned:
        options["banned"] = expand_names(arguments.banned)
    if arguments.replace_unknown is not None:
        name = arguments.replace_unknown
        options["replace_unknown"] = read_dictionary(Path(name)) if name else True
    options |= _control(arguments)
    translator = Translator(
        bundles,
        weights=arguments.weights,
        average=arguments.average or "log_probs",
        language_model=language_model,
        language_model_weight=arguments.lm_weight or 0.0,
        rescore=rescorers,
        shortlist=arguments.shortlist,
        batch_tokens=arguments.batch_tokens,
        threads=arguments.threads,
        tokenized=bool(arguments.tokenized),
        provider=arguments.provider or "cpu",
        inputs=max(1, len(arguments.input)),
    )
    given = (arguments.input, arguments.output, arguments.alignments, arguments.prefix, arguments.features)
    if text and (arguments.input or arguments.features or arguments.resume):
        raise ConfigError(f"{text[0]!r} is text, which --input, --features and --resume do not go with; leave it out")
    if is_wanted(*given, arguments.resume, text):
        Prompt(translator, options).run()
        return
    files = Files(*given, text)
    resume = None
    if arguments.resume:
        contents = {
            "bundles": _hashes(*bundles),
            "lm": language_model and _hashes(language_model),
            "rescore": _hashes(*rescorers),
            "banned": options.get("banned"),
            "glossary": arguments.glossary and hashlib.sha256(arguments.glossary.read_bytes()).hexdigest()[:16],
            "replace_unknown": hashlib.sha256(repr(options.get("replace_unknown")).encode()).hexdigest()[:16],
        }
        resume = describe_options(arguments, contents)
    warnings = translate_stream(translator, files, options, resume=resume)
    unit = "word" if translator.system.tokenizers[0].has_words else "character"
    for message in warnings.messages(unit, paragraphs=arguments.paragraphs):
        print(f"softsearch: {message}", file=sys.stderr)


def _control(arguments: argparse.Namespace) -> dict[str, Any]:
    """What translations must contain, as options of the Translator."""
    options: dict[str, Any] = {}
    if arguments.glossary is not None:
        from softsearch.runtime.glossary import open_glossary

        options = {"glossary": open_glossary(arguments.glossary), "glossary_bonus": arguments.glossary_bonus}
    if arguments.keep or arguments.keep_usual:
        from softsearch.text.keep import Keep

        options["keep"] = Keep(arguments.keep, usual=arguments.keep_usual)
    return options


def _hashes(*bundles: Bundle) -> str:
    return " ".join(bundle.sha256[:16] for bundle in bundles)


def _score(arguments: argparse.Namespace) -> None:
    from softsearch.runtime.scoring import score_files
    from softsearch.runtime.translator import Translator

    translator = Translator(arguments.bundle, tokenized=bool(arguments.tokenized))
    summary = score_files(translator, arguments.src, arguments.tgt, output=arguments.output, tokens=arguments.tokens)
    print(summary, file=sys.stderr)


def _verify(arguments: argparse.Namespace) -> None:
    import numpy as np

    from softsearch.runtime.translator import Translator

    bundle = Bundle.open(arguments.bundle)
    manifest = bundle.manifest
    if not manifest.is_single:
        translator, dim = Translator(bundle), manifest.feature_dim
        features = None if dim is None else np.zeros((1, 1, dim), dtype=np.float32)
        lines = ["."] if features is None or translator.system.tokenizers[0].reads_several_sources else None
        translator.translate(lines, features=features, max_length=2)
    if has_shortlist(bundle):
        open_shortlist(bundle, 1)
    for name, entry in manifest.files.items():
        print(f"{entry.sha256}  {entry.size:>12,} bytes  {name}")
    print(
        f"{arguments.bundle}: OK, written by softsearch {manifest.softsearch_version}, vocabularies "
        f"{manifest.src_vocab_size:,} and {manifest.tgt_vocab_size:,}, {manifest.max_src_tokens} tokens a sentence"
        + (f"; {SINGLE} was not loaded, because it is for other programming languages" if manifest.is_single else "")
    )


def _bench(arguments: argparse.Namespace) -> None:
    from softsearch.runtime.bench import bench

    options = {name: value for name in ("search", "beam") if (value := getattr(arguments, name)) is not None}
    settings = {"threads": arguments.threads, "provider": arguments.provider or "cpu"}
    for line in bench(arguments.bundle, arguments.src, options, **settings):
        print(line, flush=True)


def _web(arguments: argparse.Namespace) -> None:
    from softsearch.extras.serve.web.site import write_site

    folder = arguments.out
    sizes = write_site(arguments.bundles, folder, arguments.examples, arguments.about)
    models = sum(size for file, size in sizes.items() if file.startswith("models/"))
    print(
        f"{folder}: {(sum(sizes.values()) - models) / 1e6:.1f} MB and {models / 1e6:.1f} MB of models; put it on any "
        f"static host, or open it here:\n  {Path(sys.executable).name} -m http.server --directory "
        f"{shlex.quote(str(folder))} 8000\nthen http://localhost:8000 (not the files: browsers refuse to run them)"
    )


def _completion(arguments: argparse.Namespace) -> None:
    print(bash_completion(arguments.options), end="")


def _parse(argv: list[str]) -> argparse.Namespace:
    parser, commands = _parser()
    names = [*dict.fromkeys((*commands, *LAB))]
    if argv and not argv[0].startswith("-") and argv[0] not in names:
        parser.error(f"there is no command {argv[0]!r}{nearest(argv[0], names)}")
    return parser.parse_args(argv)


def _parser() -> tuple[Parser, Iterable[str]]:
    """The parser and the names of its commands."""
    parser = Parser(prog="softsearch", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"softsearch {softsearch.__version__}")
    commands = parser.add_subparsers(
        title="commands for exported bundles, with flags", required=True, metavar="COMMAND"
    )
    translate = commands.add_parser(
        "translate",
        help="translate lines",
        usage="%(prog)s [OPTION ...] BUNDLE [BUNDLE ...]",
        description="Translate standard input line by line to standard output, or at a prompt.",
    )
    add_translate_options(translate)
    translate.set_defaults(run=_translate, parser=translate)

    score = commands.add_parser(
        "score",
        help="score translations",
        description="For each line of TGT, write log p(TGT, end | SRC), natural log, and its tokens, the end counted.",
    )
    score.add_argument("bundle", type=Path, metavar="BUNDLE", help="folder of an exported bundle")
    score.add_argument("src", type=Path, metavar="SRC", help="source sentences, one a line (plain or compressed)")
    score.add_argument("tgt", type=Path, metavar="TGT", help="their translations")
    score.add_argument("--output", type=Path, metavar="FILE", help="write this file (default: standard output)")
    score.add_argument("--tokens", action="store_true", help="write the log probability of each token too")
    add_options(score, "--tokenized")
    score.set_defaults(run=_score)

    verify = commands.add_parser(
        "verify", help="check a bundle", description="Check every byte of a bundle, load it and translate one token."
    )
    verify.add_argument("bundle", type=Path, metavar="BUNDLE", help="folder of an exported bundle")
    verify.set_defaults(run=_verify)

    bench = commands.add_parser(
        "bench",
        help="measure the speed of a bundle",
        description="Translate up to 1,000 lines of SRC in batches and 200 one by one, and print how fast it was.",
    )
    bench.add_argument("bundle", type=Path, metavar="BUNDLE", help="folder of an exported bundle")
    bench.add_argument("src", type=Path, metavar="SRC", help="sentences, one a line (plain or compressed)")
    add_options(bench, "--search", "--beam", "--threads", "--provider")
    bench.set_defaults(run=_bench)

    _add_web(commands)
    _add_serve(commands)
    _add_completion(commands)
    return parser, commands.choices


def _add_web(commands: Any) -> None:
    web = commands.add_parser(
        "web",
        help="write a site that translates in the browser",
        description="Write a folder for any static web host: its page translates on the visitor's machine.",
    )
    web.add_argument("bundles", type=Path, nargs="+", metavar="BUNDLE", help="folder of an export with format=single")
    web.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the site; an older one is replaced")
    web.add_argument("--examples", type=Path, metavar="FILE", help="sentences to try, one a line")
    web.add_argument("--about", type=Path, metavar="JSON", help="years, papers, equations, pictures of the models")
    web.set_defaults(run=_web)


def _add_serve(commands: Any) -> None:
    server = commands.add_parser(
        "serve",
        help="answer requests over HTTP",
        description="Translate for clients over HTTP, and in the browser page at /. SIGHUP opens the bundles again.",
    )
    add_serve_options(server)
    server.set_defaults(run=serve)


def _add_completion(commands: Any) -> None:
    completion = commands.add_parser(
        "completion",
        help="print a script for bash that completes commands and options with TAB",
        description='Print a script that completes commands and options with TAB: eval "$(softsearch completion)".',
    )
    options = {name: command.option_names() for name, command in commands.choices.items()}
    completion.set_defaults(run=_completion, options=options)


def _flush_output() -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the exit cannot write the rest either
        raise


if __name__ == "__main__":
    sys.exit(main())
