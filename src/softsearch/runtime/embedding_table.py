"""The embeddings that the encoder of a bundle shares with the step."""

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.graph_check import read_table
from softsearch.runtime.manifest import DECODER_STEP, EMBEDDING_TABLE


def embedding_table(bundle: Bundle) -> NDArray[np.float32]:
    """The table ``[vocab, dim]``; an empty one if the encoder has its own.

    Raises:
        BundleError: the step has no such table.
    """
    for port in bundle.manifest.graphs["encoder"]["inputs"]:
        if port["name"] == EMBEDDING_TABLE:
            try:
                return read_table(bundle.files[DECODER_STEP], EMBEDDING_TABLE, port["shape"])
            except BundleError as error:
                raise BundleError(f"bundle {bundle.path}: {DECODER_STEP}: {error}") from error
    return np.zeros((0, 0), dtype=np.float32)
