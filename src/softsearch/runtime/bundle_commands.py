"""Commands for exported bundles, without torch: translate, score, verify and bench."""

import argparse
import hashlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from softsearch.errors import ConfigError
from softsearch.machine import cores
from softsearch.runtime.banned import expand_names
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.manifest import SINGLE
from softsearch.runtime.parsed_options import (
    check_translate_options,
    describe_options,
    search_keywords,
    stage_keywords,
    text_among,
)


def translate(arguments: argparse.Namespace) -> None:
    """Translates lines from a file, standard input, the command line or a prompt."""
    arguments.bundles, text = text_among(arguments.bundles)
    bundles = [Bundle.open(path) for path in arguments.bundles]
    arguments.search = arguments.search or ("rerank" if arguments.rescore else bundles[0].manifest.search_kind)
    check_translate_options(arguments.parser, arguments)
    # Imported here, because --help and usage errors need not wait for ONNX Runtime.
    from softsearch.runtime.streaming import Files, translate_stream
    from softsearch.runtime.translator import Translator

    language_model = None if arguments.lm is None else Bundle.open(arguments.lm)
    rescorers = [Bundle.open(path) for path in arguments.rescore]
    options = search_keywords(arguments) | {"search": arguments.search}
    if arguments.banned:
        options["banned"] = expand_names(arguments.banned)
    options |= stage_keywords(arguments.parser, arguments)
    translator = Translator(
        bundles,
        weights=arguments.weights,
        average=arguments.average or "log_probs",
        language_model=language_model,
        language_model_weight=arguments.lm_weight or 0.0,
        rescore=rescorers,
        shortlist=arguments.shortlist,
        batch_tokens=arguments.batch_tokens,
        threads=arguments.threads or max(1, cores() // arguments.processes),
        tokenized=bool(arguments.tokenized),
        provider=arguments.provider or "cpu",
        inputs=max(1, len(arguments.input)),
    )
    files = ("input", "output", "alignments", "prefix", "features", "trace", "confidence", "attention")
    given = [*(getattr(arguments, name) for name in files), text, arguments.column, arguments.new_column]
    if text and (arguments.input or arguments.features or arguments.resume or arguments.processes > 1):
        others = "--input, --features, --resume or --processes"
        raise ConfigError(f"{text[0]!r} is text, but {others} is given; leave one out")
    if _is_typed(*given, arguments.resume) and arguments.processes == 1:
        from softsearch.runtime.prompt import Prompt

        Prompt(translator, options).run()
        return
    resume = _settings(arguments, bundles, language_model, rescorers, options) if arguments.resume else None
    blank = arguments.on_error == "blank"
    if blank and (arguments.markup or arguments.features):
        raise ConfigError("--on-error blank is for single lines of text; leave out --markup and --features, or it")
    warnings = translate_stream(
        translator, Files(*given), options, resume=resume, blank_errors=blank, processes=arguments.processes
    )
    unit = "word" if translator.system.tokenizers[0].has_words else "character"
    for message in warnings.messages(unit, paragraphs=arguments.paragraphs):
        print(f"softsearch: {message}", file=sys.stderr)


def _settings(
    arguments: argparse.Namespace,
    bundles: Sequence[Bundle],
    language_model: Bundle | None,
    rescorers: Sequence[Bundle],
    options: Mapping[str, Any],
) -> dict[str, str]:
    """What the translations depend on besides the input, for ``--resume``."""
    contents = {
        "bundles": _hashes(*bundles),
        "lm": language_model and _hashes(language_model),
        "rescore": _hashes(*rescorers),
        "banned": options.get("banned"),
        "glossary": arguments.glossary and hashlib.sha256(arguments.glossary.read_bytes()).hexdigest()[:16],
        "replace_unknown": hashlib.sha256(repr(options.get("replace_unknown")).encode()).hexdigest()[:16],
    }
    return describe_options(arguments, contents)


def _is_typed(*files: object) -> bool:
    """Tells whether a person types and reads: no file is given, and input and output are terminals."""
    streams = (sys.stdin, sys.stdout)
    return not any(files) and all(stream is not None and stream.isatty() for stream in streams)


def _hashes(*bundles: Bundle) -> str:
    return " ".join(bundle.sha256[:16] for bundle in bundles)


def score(arguments: argparse.Namespace) -> None:
    """Writes the log probability of each translation."""
    from softsearch.runtime.scoring import score_files
    from softsearch.runtime.translator import Translator

    translator = Translator(arguments.bundle, tokenized=bool(arguments.tokenized))
    languages = {"tgt": arguments.tgt_lang, "src": arguments.src_lang}
    files = arguments.src, arguments.tgt
    summary = score_files(translator, *files, languages, output=arguments.output, tokens=arguments.tokens)
    print(summary, file=sys.stderr)


def verify(arguments: argparse.Namespace) -> None:
    """Checks a bundle's files, opens it and translates one token."""
    import numpy as np

    from softsearch.runtime.shortlist_files import has_shortlist, open_shortlist
    from softsearch.runtime.translator import Translator

    bundle = Bundle.open(arguments.bundle)
    manifest = bundle.manifest
    if not manifest.is_single:
        translator, dim = Translator(bundle), manifest.feature_dim
        features = None if dim is None else np.zeros((1, 1, dim), dtype=np.float32)
        lines = ["."] if features is None or translator.system.tokenizers[0].reads_several_sources else None
        translator.translate(
            lines, features=features, max_length=2, tgt=next(iter(translator.encoder.languages.targets), None)
        )
    if has_shortlist(bundle):
        open_shortlist(bundle, 1)
    for name, entry in manifest.files.items():
        print(f"{entry.sha256}  {entry.size:>12,} bytes  {name}")
    print(
        f"{arguments.bundle}: OK, written by softsearch {manifest.softsearch_version}, vocabularies "
        f"{manifest.src_vocab_size:,} and {manifest.tgt_vocab_size:,}, {manifest.max_src_tokens} tokens a sentence"
        + (f"; {SINGLE} was not loaded, because it is for other programming languages" if manifest.is_single else "")
    )


def bench(arguments: argparse.Namespace) -> None:
    """Prints a bundle's speed."""
    from softsearch.runtime.bench import bench as measurements

    options = {
        name: value for name in ("search", "beam", "tgt", "src") if (value := getattr(arguments, name)) is not None
    }
    settings = {"threads": arguments.threads, "provider": arguments.provider or "cpu"}
    for line in measurements(arguments.bundle, arguments.text, options, **settings):
        print(line, flush=True)
