"""The shortlist of a bundle: two files of it."""

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError, ConfigError
from softsearch.runtime.bundle import Bundle
from softsearch.search.shortlist import Shortlist

FREQUENT, TRANSLATIONS = "frequent.int32", "translations.int32"  # little-endian ids without a header
_IDS = "<i4"


def shortlist_files(frequent: NDArray[np.integer], translations: NDArray[np.integer]) -> dict[str, bytes]:
    """The files of a shortlist, for ``write_bundle``.

    Args:
        frequent: target ids, the most frequent first.
        translations: likely target ids of each source id, ``[src_vocab, K']``, padded with -1.
    """
    tables = {FREQUENT: frequent, TRANSLATIONS: translations}
    return {name: np.ascontiguousarray(table, dtype=_IDS).tobytes() for name, table in tables.items()}


def has_shortlist(bundle: Bundle) -> bool:
    """Tells whether a bundle holds a shortlist."""
    return {FREQUENT, TRANSLATIONS} <= bundle.files.keys()


def open_shortlist(bundle: Bundle, frequent: int) -> Shortlist:
    """The shortlist of a bundle with its ``frequent`` most frequent target words.

    Raises:
        ConfigError: the bundle has no shortlist.
        BundleError: its files do not fit the vocabularies.
    """
    if not has_shortlist(bundle):
        raise ConfigError(
            f"bundle {bundle.path} has no shortlist; export it with shortlist=10, or leave the option out"
        )
    words = _ids(bundle, FREQUENT, least=0)
    translations = _ids(bundle, TRANSLATIONS, least=-1)
    src_vocab = bundle.manifest.src_vocab_size
    if translations.size % src_vocab:
        raise BundleError(
            f"bundle {bundle.path}: {TRANSLATIONS} has {translations.size} entries, expected a multiple of the "
            f"{src_vocab} source words; export the bundle again"
        )
    return Shortlist(words[:frequent], translations.reshape(src_vocab, -1))


def _ids(bundle: Bundle, name: str, *, least: int) -> NDArray[np.int32]:
    content, most = bundle.files[name], bundle.manifest.tgt_vocab_size - 1
    ids = np.frombuffer(content[: len(content) // 4 * 4], dtype=_IDS)
    if len(content) % 4 or not ids.size or ids.min() < least or ids.max() > most:
        raise BundleError(
            f"bundle {bundle.path}: {name} holds something other than 32-bit ids from {least} to {most}; "
            "export the bundle again"
        )
    return ids
