"""The option ``replace_unknown``."""

from pathlib import Path

from softsearch.errors import ConfigError
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
