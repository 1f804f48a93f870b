"""The tokenizers of a bundle."""

from softsearch.errors import BundleError
from softsearch.runtime.bundle import Bundle
from softsearch.text.tokenizer import SentencePieceTokenizer


def open_tokenizers(bundle: Bundle) -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    """The source and the target tokenizer.

    Raises:
        BundleError: one is no SentencePiece model or of another size than the manifest says.
    """
    facts = bundle.manifest
    return (
        _open(bundle, facts.src_tokenizer, facts.src_vocab_size, reverse=facts.src_reversed),
        _open(bundle, facts.tgt_tokenizer, facts.tgt_vocab_size, reverse=facts.tgt_reversed),
    )


def _open(bundle: Bundle, name: str, vocab_size: int, *, reverse: bool) -> SentencePieceTokenizer:
    try:
        tokenizer = SentencePieceTokenizer(bundle.files[name], reverse=reverse)
    except BundleError as error:
        raise BundleError(f"bundle {bundle.path}: {name}: {error}") from error
    if tokenizer.vocab_size != vocab_size:
        raise BundleError(
            f"bundle {bundle.path}: {name} has {tokenizer.vocab_size} entries, but manifest.json says {vocab_size}; "
            "export the bundle again"
        )
    return tokenizer
