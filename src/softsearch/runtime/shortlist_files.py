"""The vocabulary shortlist of a bundle, as two files of little-endian 32-bit integers without any header."""

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError, ConfigError
from softsearch.runtime.bundle import Bundle
from softsearch.search.shortlist import Shortlist

FREQUENT = "frequent.int32"
TRANSLATIONS = "translations.int32"
_DTYPE = "<i4"


def shortlist_files(frequent: NDArray[np.integer], translations: NDArray[np.integer]) -> dict[str, bytes]:
    """The files of a shortlist, for :func:`softsearch.runtime.bundle.write_bundle`.

    Args:
        frequent: target ids, the most frequent first.
        translations: likely target ids of each source id, ``[src_vocab, K']``; -1 where there are fewer.
    """
    tables = {FREQUENT: frequent, TRANSLATIONS: translations}
    return {name: np.ascontiguousarray(table, dtype=_DTYPE).tobytes() for name, table in tables.items()}


def has_shortlist(bundle: Bundle) -> bool:
    """Whether a bundle holds a shortlist."""
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
    content = bundle.files[name]
    ids = np.frombuffer(content[: len(content) // 4 * 4], dtype=_DTYPE)
    whole = len(content) % 4 == 0 and ids.size > 0
    if not whole or ids.min() < least or ids.max() >= bundle.manifest.tgt_vocab_size:
        raise BundleError(
            f"bundle {bundle.path}: {name} holds something else than ids of 32 bits from {least} to "
            f"{bundle.manifest.tgt_vocab_size - 1}; export the bundle again"
        )
    return ids
