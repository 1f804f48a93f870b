"""Fixed feature vectors in the user's files, instead of source text."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from softsearch.data.corpora.base import FilePair, ParallelSource, TextForm, language_of
from softsearch.data.corpora.parallel import existing, is_pair
from softsearch.data.preparation.cache_folder import made_folder
from softsearch.data.preparation.digests import digest_of
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.corpus import read_lines, write_lines
from softsearch.text.features import feature_lines, read_features
from softsearch.text.vocabulary import FEATURE_TAG

_FORMAT = 1


class FeatureSources(ParallelSource):
    """Sources given as feature vectors; their text is one tag for each vector (``softsearch.text.features``)."""

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            ConfigError: the option would reverse the vectors.
        """
        if self.reverse_source:
            raise ConfigError("data.reverse_source is for text, but the sources are feature vectors; set it to false")

    @property
    def tags(self) -> tuple[str, ...]:
        return (FEATURE_TAG,)

    @property
    def has_features(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class FeatureFiles(FeatureSources):
    """Existing files: a ``.npy`` file of features ``[examples, positions, dim]``, and a line of text for each example.

    Args:
        train: the features and the text to train on; features are float16 or float32.
        tgt_lang: the language of the text; by default from the name of the training file (``captions.en`` is ``en``).
        text_form: ``lc_tok`` for text that is lower-cased and tokenised, otherwise ``plain``.

    Raises:
        ConfigError: a value does not name two files.
    """

    train: Sequence[str | Path]
    val: Sequence[str | Path]
    test: Sequence[str | Path] | None = None
    src_lang: str = "features"
    text_form: TextForm = "plain"

    def __post_init__(self) -> None:
        """Checks the options."""
        super().__post_init__()
        for split, pair in self._given_splits().items():
            if not is_pair(pair):
                raise ConfigError(
                    f"data.{split} is {pair!r}, expected a file of features and one of text; write "
                    f"data.{split}='[{split}.npy,{split}.en]'"
                )
        self._fill_in_languages([], [language_of(self.train[1])])

    def features(self, cache_dir: Path) -> dict[str, Path]:
        return {split: existing(split, pair)[0] for split, pair in self._given_splits().items()}

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the given text files, and the sources' text in ``cache_dir``, written if necessary.

        Raises:
            CorpusError: a file does not exist, the features have the wrong type or shape, or the number of text lines
                differs from that of examples.
        """
        files = {}
        for split, pair in self._given_splits().items():
            path, text = existing(split, pair)
            identity = repr((_FORMAT, read_features(path).shape, digest_of(text, cache_dir)))
            folder = made_folder(cache_dir, "features", identity, partial(_write, path, text))
            files[split] = (folder / "source", text)
        return files


def _write(path: Path, text: Path, folder: Path) -> None:
    """Writes the sources' text of a split."""
    features, lines = read_features(path), sum(1 for _ in read_lines(text))
    if lines != len(features):
        raise CorpusError(
            f"{path} has {len(features)} examples and {text} has {lines} lines, expected one line for each example; "
            "give matching files"
        )
    write_lines(folder / "source", feature_lines(features))
