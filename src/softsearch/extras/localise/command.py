"""The command ``softsearch localise BUNDLE CATALOG ... --out FILE``."""

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from softsearch import Translator
from softsearch.errors import ConfigError
from softsearch.extras.localise.catalog import Catalog, nearest_code
from softsearch.extras.localise.fill import Filled, fill
from softsearch.extras.localise.memory import memories_of
from softsearch.extras.localise.messages import found_files
from softsearch.extras.localise.opening import open_catalog
from softsearch.extras.localise.translating import options_for, translation
from softsearch.files import new_file

_SHOWN = 20  # messages that were left untranslated


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch localise``."""
    parser.add_argument(
        "bundle", type=Path, metavar="BUNDLE", help="the model, exported; best trained by data=catalogs"
    )
    parser.add_argument(
        "catalogs", nargs="+", metavar="CATALOG", help="PO, XLIFF or TS: files, folders, or patterns in quotes"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="the new catalog; with several, a folder for them")
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
    outputs = _outputs(files, arguments.out)
    translator = Translator(arguments.bundle, glossary=arguments.glossary)
    tokenizer = translator.system.tokenizers[0]
    options = {**options_for(tokenizer), **({} if arguments.beam is None else {"beam": arguments.beam})}
    codes = list(translator.encoder.languages.targets) or [translator.system.tgt_lang]
    memories = memories_of(found_files(arguments.memory) if arguments.memory else (), codes)
    for path, out in zip(files, outputs, strict=True):
        begin = time.perf_counter()
        catalog = open_catalog(path)
        code = catalog.language(path, codes, "choose a bundle that translates into its language")
        memories[code].add(catalog, path.name)
        own = {**options, **_languages(translator, catalog, code)}
        translate = translation(partial(translator.translate, **own), symbols=tokenizer.reads_symbols)
        filled = fill(catalog, memories[code], translate)
        if not arguments.dry_run and out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            with new_file(out) as file:
                file.write(bytes(catalog))
        _print(path, None if arguments.dry_run else out, filled, time.perf_counter() - begin)


def _languages(translator: Translator, catalog: Catalog, code: str) -> dict[str, str]:
    """The options that name a catalog's languages, for a model of several."""
    known = translator.encoder.languages
    src = nearest_code(catalog.src_lang.replace("_", "-"), known.sources) if known.sources else ""
    return ({"tgt": code} if known.targets else {}) | ({"src": src} if src else {})


def _outputs(files: Sequence[Path], out: Path | None) -> list[Path | None]:
    """Returns the file to write for each catalog.

    Raises:
        ConfigError: one exists, or a catalog is of a format that is only read.
    """
    if read_only := [path for path in files if path.suffix.lower() == ".tmx"]:
        raise ConfigError(f"{read_only[0]} is a TMX, which is only read; name it as --memory, or as data.train")
    if out is None:
        return [None] * len(files)
    outputs = [out] if len(files) == 1 and not out.is_dir() else [out / path.name for path in files]
    if len(set(outputs)) < len(files):
        raise ConfigError("two catalogs have the same name; write them one by one, each with its own --out")
    if there := [path for path in outputs if path.exists()]:
        raise ConfigError(f"{there[0]} exists already; choose another --out, or remove it")
    return list(outputs)


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
