"""Writes a site: the built page, models from ``export.py format=single``, and ``site.json``, which describes them."""

import hashlib
import json
import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import softsearch
from softsearch.errors import BundleError, ConfigError
from softsearch.extras.serve.models import ModelFacts, model_facts
from softsearch.extras.serve.web.about import Example, PageAbout, read_about
from softsearch.files import MANIFEST, new_folder
from softsearch.runtime import Bundle
from softsearch.runtime.parts import SINGLE, check_replaceable, open_tokenizers, writing
from softsearch.text import read_lines
from softsearch.text.parts import read_json

SITE = "site.json"
SERVICE_WORKER = "service-worker.js"
TOKENIZER = "tokenizer.json"
MAX_GRAPH_BYTES = 1 << 30  # WebAssembly has 4 GiB in total for the file, the weights and the search
_MAX_EXAMPLES = 100
_DOCS = "docs"  # assets that only a server needs
_ASSETS = Path(__file__).parent / "assets"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def assets() -> Path:
    """Returns the folder of the built page.

    Raises:
        ConfigError: the page is not built.
    """
    if not (_ASSETS / "index.html").is_file():
        raise ConfigError(
            f"the page is not built: {_ASSETS} has no index.html; install Node.js 20 or newer and run `make web` in "
            "the clone, or install softsearch from its wheel, which contains the page"
        )
    return _ASSETS


def site_json(
    models: Iterable[ModelFacts],
    *,
    backend: Literal["local", "server"],
    version: str,
    about: PageAbout | None = None,
    files: Sequence[str] = (),
    most_tokens: Mapping[str, Sequence[int]] | None = None,
    without_symbols: Collection[str] = (),
    offers: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns the content of ``site.json``, which the page reads first.

    Args:
        models: models by the names shown on the page and used in addresses.
        backend: where the search runs: in the browser, or on the server.
        version: version of the site's contents.
        about: information about the models, with sentences to try.
        files: all files of the site; none for a server.
        most_tokens: of the translations of 0, 1, 2, ... source tokens, by model, for the search in the browser.
        without_symbols: models that read symbols in place of placeholders, which only the server writes.
        offers: of a server: ``options`` for a form, names of ``glossaries``, and the ``file_kinds``
            that it takes, with those ``of_one_language``.
    """
    about = about or PageAbout()
    more: dict[str, dict[str, Any]] = {name: {"about": asdict(model)} for name, model in about.models.items()}
    for name, limits in (most_tokens or {}).items():
        more[name] = {**more.get(name, {}), "most_tokens": [*limits]}
    for name in without_symbols:
        more[name] = {**more.get(name, {}), "without_symbols": True}
    return {
        "version": version,
        "backend": backend,
        "title": about.title,
        "text": about.text,
        "models": [asdict(facts) | {"about": None} | more.get(facts.name, {}) for facts in models],
        "examples": [asdict(example) for example in about.examples],
        "files": list(files),
        **(offers or {}),
    }


def model_names(paths: Sequence[Path]) -> list[str]:
    """Names each bundle after its folder; names are safe in addresses and unique, even ignoring case."""
    names: list[str] = []
    for path in paths:
        stem = _UNSAFE.sub("-", path.resolve().name).strip("._-") or "model"
        taken = {name.casefold() for name in names}
        tries = (stem, *(f"{stem}-{number}" for number in range(2, len(paths) + 2)))
        names.append(next(name for name in tries if name.casefold() not in taken))
    return names


def write_site(
    bundles: Sequence[Path], folder: Path, examples: Path | None = None, about: Path | None = None
) -> dict[str, int]:
    """Writes a site atomically: on any failure an older site is unchanged.

    Args:
        bundles: folders of ``export.py format=single``.
        folder: folder of the new site; an older site is replaced.
        examples: a file of sentences to try, one per line.
        about: a JSON file about the models (``softsearch.extras.serve.web.about``), which are then sorted by year.

    Returns:
        The sizes of the site's files in bytes, by path.

    Raises:
        BundleError: a bundle is damaged or not for browsers, or the folder has other content or is not writable.
        ConfigError: the page is not built, there are too many examples, or ``about`` is wrong.
        CorpusError: the examples cannot be read.
    """
    page = assets()
    check_replaceable(folder, "site", _listed(folder / SITE))
    paths = dict(zip(model_names(bundles), bundles, strict=True))
    page_about = PageAbout() if about is None else read_about(about, paths)
    page_about = replace(page_about, examples=(*page_about.examples, *_read_examples(examples)))
    opened = {name: _open_single(paths[name]) for name in page_about.in_order(paths)}
    with writing(folder, "site"), new_folder(folder) as fresh:
        shutil.copytree(
            page, fresh, dirs_exist_ok=True, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns(_DOCS)
        )
        for name, bundle in opened.items():
            model = fresh / "models" / name
            model.mkdir(parents=True)
            for file in _model_files(bundle):
                (model / file).write_bytes(bundle.files[file])
            (model / MANIFEST).write_bytes((bundle.path / MANIFEST).read_bytes())
        files = sorted(path.relative_to(fresh).as_posix() for path in fresh.rglob("*") if path.is_file())
        facts = [model_facts(name, bundle) for name, bundle in opened.items()]
        limits = {name: _most_tokens(bundle) for name, bundle in opened.items()}
        site = site_json(
            facts,
            backend="local",
            version="",
            about=page_about,
            files=[*files, SITE],
            most_tokens=limits,
            without_symbols=[name for name, bundle in opened.items() if open_tokenizers(bundle)[0].reads_symbols],
        )
        site["version"] = _version(fresh, files, site)
        (fresh / SITE).write_text(_json(site), encoding="utf-8")
        _add_site(fresh / SERVICE_WORKER, site)
        sizes = {file: (fresh / file).stat().st_size for file in site["files"]}
    return sizes


def _open_single(path: Path) -> Bundle:
    """Opens a bundle that browsers can use.

    Raises:
        BundleError: browsers cannot use it.
    """
    if (path / "checkpoints").is_dir() or path.suffix == ".ckpt":
        raise BundleError(
            f"{path} is a run, expected a bundle; softsearch export ckpt={path} out=exports/single format=single"
        )
    bundle = Bundle.open(path)
    if not bundle.manifest.is_single:
        raise BundleError(
            f"bundle {path} has no {SINGLE}, which browsers need; export the same checkpoint again: "
            "softsearch export ckpt=RUN/checkpoints/best.ckpt out=exports/NAME-single format=single"
        )
    size = bundle.manifest.files[SINGLE].size
    if size > MAX_GRAPH_BYTES:
        raise BundleError(
            f"bundle {path}: {SINGLE} has {size:,} bytes, but browsers load at most {MAX_GRAPH_BYTES:,}; export it "
            "with precision=int8 or train a smaller model"
        )
    missing = [file for file in _model_files(bundle) if file not in bundle.files]
    if missing:
        reverse = bundle.manifest.src_reversed or bundle.manifest.tgt_reversed
        reason = (
            "it reads or writes from the end of a text to its start, which the format cannot express"
            if reverse
            else "the export omitted it with a warning, because it would give other tokens than SentencePiece"
        )
        raise BundleError(
            f"bundle {path} has no {missing[0]}, which browsers need: {reason}; train the model with "
            + ("another direction" if reverse else "another tokenizer, for example tokenizer=bpe")
        )
    return bundle


def _most_tokens(bundle: Bundle) -> list[int]:
    strategy = bundle.manifest.strategy
    return [strategy.lengths(length).most for length in range(bundle.manifest.max_src_tokens)]


def _model_files(bundle: Bundle) -> list[str]:
    joint = TOKENIZER in bundle.files or bundle.manifest.src_tokenizer == bundle.manifest.tgt_tokenizer
    return [SINGLE, *([TOKENIZER] if joint else [f"{side}.{TOKENIZER}" for side in ("src", "tgt")])]


def _read_examples(path: Path | None) -> list[Example]:
    lines = [] if path is None else [line.strip() for line in read_lines(path)]
    if len(lines) > _MAX_EXAMPLES:
        raise ConfigError(
            f"{path} has {len(lines):,} lines, expected at most {_MAX_EXAMPLES} examples; make it shorter"
        )
    return [Example(text=line) for line in lines if line]


def _version(folder: Path, files: Sequence[str], site: Mapping[str, Any]) -> str:
    """Returns a name for these contents: browsers that keep another version load this one."""
    digest = hashlib.sha256(_json(site).encode())
    for file in files:
        digest.update(hashlib.sha256((folder / file).read_bytes()).digest())
    return f"{softsearch.__version__}+{digest.hexdigest()[:12]}"


def _add_site(service_worker: Path, site: Mapping[str, Any]) -> None:
    """Adds the version and the files to keep to the script, which browsers reload when its bytes differ."""
    kept = [file for file in site["files"] if file != SERVICE_WORKER and not _is_model(file)]
    start = f"self.SITE={_json({'version': site['version'], 'files': kept})};\n"
    service_worker.write_text(start + service_worker.read_text(encoding="utf-8"), encoding="utf-8")


def _is_model(file: str) -> bool:
    """Tells whether a file is cached when its model is used, not at once."""
    return file.startswith("models/") and not file.endswith(f"/{MANIFEST}")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _listed(site: Path) -> set[str]:
    """Returns the files that a site lists; none if the folder is not a site."""
    try:
        tree = read_json(site)
        return set(tree["files"]) if tree["backend"] == "local" else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()
