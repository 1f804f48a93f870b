"""Lower precision for a bundle, refused if it translates validation sentences worse."""

from collections.abc import Callable
from typing import Any

import numpy as np

from softsearch.app.console import print_rows
from softsearch.errors import BundleError, ConfigError
from softsearch.evaluation.metrics import bleu_for
from softsearch.evaluation.test_set import HeldOutText
from softsearch.export.precision import LowPrecision, lower_precision
from softsearch.runtime.bundle import Bundle
from softsearch.search.interface import Sentences
from softsearch.text.tokenizer import Tokenizers

_SENTENCES = 1000  # at most this number is translated


def lowering(
    precision: LowPrecision, text: HeldOutText, tokenizers: Tokenizers, max_bleu_loss: float
) -> Callable[[Bundle], tuple[Bundle, dict[str, Any]]]:
    """Returns a function from a float32 bundle to one in ``precision`` and facts about it.

    The function prints the loss, and raises a BundleError if it is more than ``max_bleu_loss``.
    """

    def lower(bundle: Bundle) -> tuple[Bundle, dict[str, Any]]:
        lengths = map(len, text.encode(tokenizers)[0])
        short = [index for index, length in enumerate(lengths) if 0 < length < bundle.manifest.max_src_tokens]
        if not short:
            raise ConfigError(f"all sentences of {text.name} are longer than max_src_tokens; raise max_src_tokens")
        at_even_distances = np.linspace(0, len(short) - 1, min(_SENTENCES, len(short)), dtype=int)
        used = text.joined(tokenizers[1]).select([short[index] for index in at_even_distances])
        metric = bleu_for(text.text_form, text.tgt_lang)

        def bleu(translations: Sentences) -> float:
            lines = [tokenizers[1].decode(ids) for ids in translations]
            return metric.corpus_score(lines, used.references)

        lowered, loss = lower_precision(bundle, precision, used.encode(tokenizers)[0], bleu)
        rows = [("float32", f"{loss.before:.2f}", ""), (precision, f"{loss.after:.2f}", f"{loss.agreement:.1%}")]
        print_rows(("precision", "BLEU", "same lines"), rows, title=f"{loss.sentences:,} sentences of {text.name}")
        if loss.bleu > max_bleu_loss:
            raise BundleError(
                f"{precision} loses {loss.bleu:.2f} BLEU on {loss.sentences:,} validation sentences, expected at most "
                f"{max_bleu_loss}; nothing was written; export with precision=float32 or raise max_bleu_loss"
            )
        return lowered, {"precision": {"name": precision, **loss._asdict()}}

    return lower
