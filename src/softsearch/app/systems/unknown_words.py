"""Unknown words of a system's translations, replaced after the search."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from softsearch.app.systems.open import System
from softsearch.errors import ConfigError
from softsearch.evaluation.inference import BATCH_TOKENS
from softsearch.search.forced import forced_alignments
from softsearch.search.interface import Hypothesis
from softsearch.text.unknown_words import UnknownWords
from softsearch.text.vocabulary import EOS, UNK
from softsearch.text.word_dictionary import read_dictionary

COPY = "copy"


def read_replace_unknown(option: object) -> dict[str, str] | None:
    """The dictionary that ``replace_unknown`` names: empty for ``copy``; None to leave unknown words as they are.

    Raises:
        ConfigError: the option is no text.
        CorpusError: the file cannot be read.
    """
    if option is None:
        return None
    if not isinstance(option, str):
        raise ConfigError(f"replace_unknown is {option!r}, expected copy or a file of src/dictionary.py")
    return {} if option == COPY else read_dictionary(Path(option))


def translation_texts(
    system: System, sources: Sequence[str], found: Sequence[Hypothesis], dictionary: Mapping[str, str] | None
) -> list[str]:
    """The texts of translations.

    Where the system looked is computed anew for those with unknown words, so that any search will do.

    Args:
        system: what translated.
        sources: the text that it translated.
        found: its translation of each.
        dictionary: what replaces unknown words, see :class:`UnknownWords`; None to leave them as they are.

    Raises:
        ConfigError: the system is not over words, or has no attention.
    """
    src_tokenizer, tgt_tokenizer = system.tokenizers
    texts = [tgt_tokenizer.decode(hypothesis.tokens) for hypothesis in found]
    if dictionary is None:
        return texts
    replace = UnknownWords(src_tokenizer, tgt_tokenizer, dictionary)
    if not system.step_fn.has_attention:
        raise ConfigError(f"replace_unknown: {system.origin} has no attention; set replace_unknown=null")
    places = [place for place, hypothesis in enumerate(found) if UNK in hypothesis.tokens]
    src = [[*src_tokenizer.encode(sources[place]), EOS] for place in places]
    tgt = [found[place].tokens for place in places]
    matrices = forced_alignments(system.step_fn, src, tgt, batch_tokens=BATCH_TOKENS)
    for place, tokens, matrix in zip(places, tgt, matrices or [], strict=True):
        texts[place] = replace(sources[place], tokens, matrix)
    return texts
