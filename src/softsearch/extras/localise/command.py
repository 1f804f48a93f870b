"""The command ``softsearch localise BUNDLE CATALOG ... --out FILE``."""

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from softsearch import Translator
from softsearch.errors import ConfigError
from softsearch.extras.localise.catalog import Catalog, nearest_code
from softsearch.extras.localise.fill import Filled, fill
from softsearch.extras.localise.memory import memories_of
from softsearch.extras.localise.messages import found_files
from softsearch.extras.localise.opening import files_of, open_catalog
from softsearch.extras.localise.outputs import Outputs, digest_of_files, output_files
from softsearch.extras.localise.translating import options_for, translation
from softsearch.extras.shared.served_files import REVIEW
from softsearch.files import MANIFEST

_SHOWN = 20  # messages that were left untranslated


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch localise``."""
    parser.add_argument(
        "bundle", type=Path, metavar="BUNDLE", help="the model, exported; best trained by data=catalogs"
    )
    parser.add_argument(
        "catalogs",
        nargs="+",
        metavar="CATALOG",
        help="files, folders, or patterns in quotes: PO, XLIFF, TS; .xml of Android, .properties, .strings, JSON",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the new catalog, or a folder, in which each has its own name"
    )
    parser.add_argument(
        "--memory",
        action="append",
        default=[],
        metavar="PATTERN",
        help="catalogs whose translations of the same text are taken",
    )
    parser.add_argument(
        "--glossary", type=Path, metavar="FILE", help="terms that translations must contain, as in softsearch translate"
    )
    parser.add_argument(
        "--tgt", default="", metavar="CODE", help="language of the catalogs that name none, for a model of several"
    )
    parser.add_argument("--beam", type=int, default=None, metavar="N", help="hypotheses kept (default: the bundle's)")
    parser.add_argument("--dry-run", action="store_true", help="only print what would be done")
    parser.set_defaults(parser=parser)


def localise(arguments: argparse.Namespace) -> None:
    """Fills catalogs and prints what was done.

    Raises:
        SoftsearchError: a file cannot be read, is of another language, or would be replaced.
    """
    files = found_files(arguments.catalogs)
    if arguments.out is None and not arguments.dry_run:
        arguments.parser.error("write --out FILE, or --dry-run to see what would be done")
    if read_only := [path for path in files if path.suffix.lower() == ".tmx"]:
        raise ConfigError(f"{read_only[0]} is a TMX, which is only read; name it as --memory, or as data.train")
    translator = Translator(arguments.bundle, glossary=arguments.glossary)
    src_lang, memory_files = translator.system.src_lang, found_files(arguments.memory) if arguments.memory else []
    paths, outputs = list[Path | None]([None] * len(files)), None
    if arguments.out is not None and not arguments.dry_run:
        new = output_files(files, arguments.out)
        made_from = [digest_of_files(files_of(path, src_lang)) for path in files]
        own = [arguments.bundle / MANIFEST, *([arguments.glossary] if arguments.glossary else [])]
        own += [each for path in memory_files for each in files_of(path, src_lang)]
        call = digest_of_files(own, (arguments.beam, arguments.tgt))
        outputs, paths = Outputs(arguments.out, dict(zip(new, made_from, strict=True)), call), [*new]
    options = {} if arguments.beam is None else {"beam": arguments.beam}
    filling = _Filling(translator, options, memory_files, arguments.tgt)
    for path, out in zip(files, paths, strict=True):
        begin = time.perf_counter()
        catalog, code = filling.opened(path)
        if outputs is not None and out in outputs.complete:
            print(f"{out} was written before")
            continue
        filled = filling.fill(catalog, code)
        if outputs is not None and out is not None:
            outputs.write(out, bytes(catalog), catalog.review().encode())
        _print(path, out, filled, time.perf_counter() - begin)
        if out is not None and catalog.to_review:
            print(f"  to be reviewed: {out}{REVIEW}")
    if outputs is not None:
        outputs.finish()


class _Filling:
    """A model with its memories, by language."""

    def __init__(
        self, translator: Translator, options: dict[str, Any], memory_files: Sequence[Path], unnamed: str
    ) -> None:
        self._translator, self._tokenizer = translator, translator.system.tokenizers[0]
        self._options = {**options_for(self._tokenizer), **options}
        self._codes = list(translator.encoder.languages.targets) or [translator.system.tgt_lang]
        self._sources = list(translator.encoder.languages.sources) or translator.system.src_lang.split("+")
        if unnamed and not nearest_code(unnamed, self._codes):
            raise ConfigError(f"--tgt is {unnamed!r}, expected one of {', '.join(self._codes)}")
        self._unnamed = unnamed
        self._memories = memories_of(memory_files, self._codes, translator.system.src_lang, unnamed=unnamed)

    def opened(self, path: Path) -> tuple[Catalog, str]:
        """Opens a catalog, and adds it to the memory of its language."""
        catalog = open_catalog(path, self._translator.system.src_lang)
        advice = "choose a bundle that translates into its language"
        code = catalog.language(path, self._codes, advice, unnamed=self._unnamed)
        catalog.check_source(path, self._sources)
        catalog.check_messages(path)
        self._memories[code].add(catalog, path.name)
        return catalog, code

    def fill(self, catalog: Catalog, code: str) -> Filled:
        """Fills a catalog."""
        own, memory = {**self._options, **_languages(self._translator, catalog, code)}, self._memories[code]
        return fill(catalog, memory, translation(partial(self._translator.translate, **own), self._tokenizer, memory))


def _languages(translator: Translator, catalog: Catalog, code: str) -> dict[str, str]:
    """The options that name a catalog's languages, for a model of several."""
    known = translator.encoder.languages
    src = nearest_code(catalog.src_lang.replace("_", "-"), known.sources) if known.sources else ""
    return ({"tgt": code} if known.targets else {}) | ({"src": src} if src else {})


def _print(path: Path, out: Path | None, filled: Filled, seconds: float) -> None:
    print(f"{path}{f' -> {out}' if out else ''} ({seconds:.1f} s)")
    for name, count in filled.counts().items():
        print(f"  {name:28}{count:>8,}")
    for source, reason in filled.left[:_SHOWN]:
        print(f"    {source!r:.60}: {reason:.160}")
    if len(filled.left) > _SHOWN:
        print(f"    and {len(filled.left) - _SHOWN:,} others")
    if filled.unknown:
        print(f"  the model does not know: {' '.join(sorted(filled.unknown)[:40])}", file=sys.stderr)
