"""SentencePiece models, checked when they are read."""

import sentencepiece

from softsearch.errors import BundleError
from softsearch.text.vocabulary import BOS, EOS, PAD, UNK


def parse_model(model: bytes) -> sentencepiece.SentencePieceProcessor:
    """Returns the processor of a model with the lab's special ids.

    Raises:
        BundleError: the bytes are not such a model, or a piece is not UTF-8.
    """
    try:
        if not model:
            raise RuntimeError("it is empty")
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise BundleError(
            f"the tokenizer is not a SentencePiece model ({len(model)} bytes: {str(error).strip()}); "
            "expected the bytes of a .model file, export or train it again"
        ) from error
    special_ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if special_ids != (PAD, UNK, BOS, EOS):
        raise BundleError(
            f"the tokenizer has the special ids pad, unk, bos, eos = {special_ids}, expected {(PAD, UNK, BOS, EOS)}; "
            "train it with this lab"
        )
    try:
        processor.id_to_piece(list(range(processor.get_piece_size())))
        processor.decode([UNK])
    except UnicodeDecodeError as error:
        raise BundleError(
            f"the tokenizer has a piece that is not UTF-8 ({error}); expected text, do not use this file"
        ) from error
    return processor
