"""Options of several languages, as people type them: pairs of files, and files for a model that reads tags."""

import re
from collections.abc import Sequence

DEFAULT_PAIRS = ("de", "fr")  # those of configs/data/multilingual.yaml
DEFAULT_SOURCES = ("en", "fr")  # those of configs/data/multi_source.yaml, the second with values of the first
_OF_ONE = re.compile(r"\+*data\.(?!pairs\.)(\w+)(.*)")
_HELD_OUT = ("val", "test")
_OF_ALL = ("weights", "temperature", "links", "reverse_source", "target_direction", "source_tags")
_CLASSES = {"data=parallel": "Parallel", "data=table": "Table"}


def with_pairs(words: Sequence[str]) -> list[str]:
    """Returns the words with pairs of files as nodes: ``data.pairs.new='[a.en,a.fr]'`` replaces the default pairs.

    ``data.val`` and ``data.test`` are those of each of these pairs without its own. ``data.sources.new='[a.en,a.de]'``
    replaces the default sources of ``data=multi_source``, unless one of them is typed.
    """
    words = _with_files(words, "pairs", "data=multilingual", DEFAULT_PAIRS)
    if any(word.startswith("data=") and word != "data=multi_source" for word in words):
        return words  # other sources are not pairs of files
    return _with_files(words, "sources", "data=multi_source", DEFAULT_SOURCES)


def _with_files(words: Sequence[str], section: str, choice: str, defaults: Sequence[str]) -> list[str]:
    whole = re.compile(rf"\+*data\.{section}\.(\w+)=(\[.*)")  # data.pairs.new='[a.en,a.fr]'
    files = {match[1]: match[2] for word in words if (match := whole.fullmatch(word))}
    if not files:
        return [*words]
    own = re.compile(rf"\+*(data\.{section}\.({'|'.join(files)})\..*)")
    held_out = [f"data.{split}" for split in _HELD_OUT if section == "pairs"]  # sources hold out the same lines
    common = [word for word in words if word.partition("=")[0] in held_out]
    left = [word for word in words if not whole.fullmatch(word) and word not in common]
    if not any(word.startswith("data=") for word in words):
        left.append(choice)
    if choice in left:
        others = [word for word in left if not own.fullmatch(word)]
        used = {name for name in defaults if any(re.search(rf"data\.{section}\.{name}\b", word) for word in others)}
        if section == "sources" and used:
            used = {*defaults} - files.keys()
        left += [f"~data.{section}.{name}" for name in defaults if name not in used]
    nodes = [
        f"+data.{section}.{name}={{_target_: softsearch.data.Parallel, train: {value}}}"
        for name, value in files.items()
    ]
    options = [f"+{match[1]}" for word in left if (match := own.fullmatch(word))]
    for name in files:
        for word in common:
            key = word.removeprefix("data.").partition("=")[0]
            if not any(option.startswith(f"+data.{section}.{name}.{key}=") for option in options):
                options.append(f"+data.{section}.{name}.{word.removeprefix('data.')}")
    return [*(word for word in left if not own.fullmatch(word)), *nodes, *options]


def with_tags(words: Sequence[str]) -> list[str]:
    """Returns the words for a model that reads the languages in tags: one corpus becomes the only pair, with tags."""
    chosen = next((word for word in words if word in _CLASSES), None)
    if chosen is None:
        return [*words]
    kept, node = list[str](), list[str]()
    for word in words:
        match = _OF_ONE.fullmatch(word)
        if match and match[1] not in _OF_ALL:
            node.append(f"+data.pairs.given.{match[1]}{match[2]}")
        elif word != chosen:
            kept.append(word)
    target = f"+data.pairs.given._target_=softsearch.data.{_CLASSES[chosen]}"
    removed = [f"~data.pairs.{name}" for name in DEFAULT_PAIRS]
    return [*kept, "data=multilingual", "data.source_tags=true", *removed, target, *node]
