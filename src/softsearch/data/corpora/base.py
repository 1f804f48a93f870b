"""The interface of all sources of parallel text."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from softsearch.data.preparation.store import Store
from softsearch.errors import CorpusError
from softsearch.text.corpus import PACKED
from softsearch.text.features import Features, read_features
from softsearch.text.filters import NO_FILTERS, Filters, Letters

Split = Literal["train", "val", "test"]
TextForm = Literal["plain", "lc_tok"]
Direction = Literal["l2r", "r2l"]
FilePair = tuple[Path, Path]
Picture = NDArray[np.uint8]  # [height, width, 3]
_LinkFiles = str | Path | Sequence[str | Path] | None
Links = Annotated[
    Literal["auto"] | Mapping[Literal["train"], _LinkFiles] | None, "auto, or a file: data.links.train=FILE"
]
DIVISION = 2  # rule by which held-out pairs are chosen; raise it when the same text is divided in another way
LEFT_OUT = ".left_out"  # suffix of a file with the numbers of pairs split off a corpus
_LANGUAGE = re.compile(r"[a-z]{2,3}([-_]([A-Z]{2}|[A-Z][a-z]{3}))?")  # such as en, hsb, pt_BR and zh-Hans
_NO_LANGUAGE = re.compile("bpe|dev|hyp|lc|npy|out|raw|ref|spm|src|tgt|tok|trg|tst|val")  # suffixes, not languages


@dataclass(frozen=True, kw_only=True)
class Languages:
    """What the text of a source is, and in which direction it is read.

    Args:
        src_lang: the source language's code, such as ``en``; text sources with free languages detect it if it is "".
        tgt_lang: the target language's code, like ``src_lang``.
        reverse_source: read the source from its end to its start (Sutskever et al. 2014, section 3.3).
        target_direction: ``r2l`` writes the target from its end to its start.
    """

    src_lang: str = ""
    tgt_lang: str = ""
    reverse_source: bool = False
    target_direction: Direction = "l2r"

    def _fill_in_languages(self, src: Iterable[str], tgt: Iterable[str]) -> None:
        """Sets the languages that are not given; several are joined, such as ``de+fr``."""
        for key, found in (("src_lang", src), ("tgt_lang", tgt)):
            object.__setattr__(self, key, getattr(self, key) or "+".join(filter(None, dict.fromkeys(found))))

    @property
    def reversed_sides(self) -> tuple[bool, bool]:
        """Tells whether the token ids of the source and of the target run backwards."""
        return self.reverse_source, self.target_direction == "r2l"

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that source lines may have, and symbols such as ``<1>``; each is one piece of the vocabulary."""
        return ()

    @property
    def text_form(self) -> TextForm:
        """``plain``, or ``lc_tok``: lower-cased and tokenised already, so that BLEU is computed without tokenising."""
        return "plain"


class Filtered(Languages):
    """Training pairs that are filtered; those of most sources are not."""

    @property
    def filters(self) -> Filters:
        """The filters of training pairs."""
        return NO_FILTERS

    def letters(self) -> list[Letters]:
        """Returns patterns of both languages' letters if the filters need them."""
        if self.filters.min_script is None:
            return []
        from softsearch.data.scripts import letters_of  # its libraries take a tenth of a second to import

        return [letters_of(self.src_lang, "data.src_lang"), letters_of(self.tgt_lang, "data.tgt_lang")]


class Corpora(ABC):
    """The files of a source; a subclass defines ``files``, and the others if it has several corpora or divides them."""

    @abstractmethod
    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the source and target file of each split, generated or downloaded if necessary.

        With several training corpora this is the first; ``train_files`` returns all of them.

        Args:
            cache_dir: folder for generated and downloaded files, which are reused with the same options.

        Raises:
            CorpusError: a file is missing or cannot be written.
        """

    def undivided(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files before pairs are split off the training text; raises as ``files``."""
        return self.files(cache_dir)

    def train_files(self, cache_dir: Path) -> list[FilePair]:
        """Returns the files of every training corpus; raises as ``files``."""
        return [self.files(cache_dir)["train"]]

    @property
    def prepared(self) -> Path | Store | None:
        """A folder or a store of prepared data, if the source is one; else data are made from the text."""
        return None

    @property
    def has_one_pair(self) -> bool:
        """Tells whether the training text is a single pair of files, which sources that join others need."""
        return True

    def repeats(self, sizes: Sequence[int]) -> list[float]:
        """Returns how often each training corpus's pairs are seen in an epoch; ``sizes`` are numbers of pairs."""
        return [1.0] * len(sizes)


class FeatureVectors:
    """Feature vectors as sources, such as those of pictures; most sources have none."""

    @property
    def has_features(self) -> bool:
        """Tells whether the sources are feature vectors; their text then only gives the number of positions."""
        return False

    def features(self, cache_dir: Path) -> dict[str, Path]:
        """Returns the file of each split's feature vectors, if the data has any; raises as ``files``."""
        return {}

    def split_features(self, split: str, cache_dir: Path) -> Features | None:
        """Returns the feature vectors of a split, example by example, if the data has any; raises as ``files``."""
        path = self.features(cache_dir).get(split)
        return None if path is None else read_features(path)

    def picture(self, features: Features) -> Picture | None:
        """Returns the picture that feature vectors ``[positions, dim]`` describe, if it can be drawn from them."""
        return None


@dataclass(frozen=True, kw_only=True)
class WordLinks(Corpora, FeatureVectors):
    """Links between words of the training text that translate each other.

    Args:
        links: for ``method=guided_alignment``: a file in Pharaoh's format as ``train``, or a list with one for each of
            several corpora; or ``auto``, for links by IBM Model 1 with a diagonal prior.
    """

    links: Links = None

    def train_links(self, cache_dir: Path) -> list[Path] | None:
        """Returns the links file of each training corpus, an empty list to make links, or None for no links.

        If pairs are split off the training text, these are the links of the remaining pairs, written next to them.

        Raises:
            CorpusError: a file does not exist, or the number of files is wrong.
        """
        if not (paths := given_links(self.links)):
            return paths
        corpora = self.train_files(cache_dir)
        if self.has_features or len(paths) != len(corpora):
            found = "features as its source, which have no words" if self.has_features else f"{len(corpora)} corpora"
            raise CorpusError(
                f"data.links.train has {len(paths)} files of links, but the training data has {found}; set "
                "data.links.train to one file per text corpus, or data.links=null"
            )
        is_divided = any(is_size(getattr(self, split, None)) for split in ("val", "test"))
        return [src.with_suffix(".links") for src, _ in corpora] if is_divided else paths


@dataclass(frozen=True, kw_only=True)
class ParallelSource(Filtered, WordLinks):
    """Parallel text in files, by split.

    A source of your own defines ``files`` (``Corpora``) and its options; ``text_form`` and ``tags`` (``Languages``) if
    its text is special, ``filters`` if it has some, and the members of ``FeatureVectors`` if its sources are vectors.
    All sources have the options of ``Languages`` and ``WordLinks``.
    """

    def _given_splits(self) -> dict[str, Any]:
        """Returns the options ``train``, ``val`` and ``test`` that are set to something other than a number."""
        splits = {split: getattr(self, split) for split in get_args(Split)}
        return {split: value for split, value in splits.items() if value is not None and not is_size(value)}

    def _identity(self, **further: object) -> str:
        """Returns everything that determines generated text, as JSON: most options, and ``further`` facts."""
        other = ("reverse_source", "target_direction", "links")
        options = {k: v for k, v in asdict(self).items() if k not in other}
        return json.dumps({**options, **further}, sort_keys=True)


def line_of_links(given: Path, read: Path, number: int) -> str:
    """Names a line of the links by its number in the given file, before pairs were split off."""
    left_out = read.with_suffix(LEFT_OUT)
    if read != given and left_out.is_file():
        for before in map(int, left_out.read_text().split()):
            number += before <= number
    return f"{given}:{number}"


def given_links(links: Links) -> list[Path] | None:
    """Returns the files in ``data.links``, an empty list to make links (``auto``), or None for no links.

    Raises:
        CorpusError: a file does not exist.
    """
    train = [] if links == "auto" else links["train"] if links else None
    if train is None:
        return None
    paths = [train] if isinstance(train, str | Path) else train
    for path in paths:
        require_file("links.train", path)
    return [*map(Path, paths)]


def is_size(value: object) -> bool:
    """Returns whether a split is a number of pairs to split off the training text."""
    return isinstance(value, int | float)


class UnreadPath(str):
    """A path that only a checkpoint names; it is therefore not read."""

    __slots__ = ()


def refuse_unread(key: str, path: str | Path) -> None:
    """Refuses an ``UnreadPath``.

    Raises:
        CorpusError: the path must not be read.
    """
    if isinstance(path, UnreadPath):
        raise CorpusError(
            f"the checkpoint names {path} as its data.{key}, which was not read: only a checkpoint in its run's folder "
            "(RUN/checkpoints next to RUN/config.yaml) may choose files; set data=..., or test='[x.en,x.de]'"
        )


def require_file(split: str, path: str | Path) -> None:
    """Checks that a file of a split exists.

    Raises:
        CorpusError: the file does not exist.
    """
    refuse_unread(split, path)
    if not Path(path).is_file():
        found = "a folder, expected a file" if Path(path).is_dir() else "no such file"
        raise CorpusError(f"data.{split}: {found}: {path}")


def language_of(path: str | Path) -> str:
    """The language in a file's name: ``en`` in ``news.en``, ``news.en.gz`` and ``news.en.tok``, or ""."""
    suffixes = [suffix[1:] for suffix in Path(path).suffixes if suffix not in (*PACKED, ".txt")]
    suffixes = [suffix for suffix in suffixes if not _NO_LANGUAGE.fullmatch(suffix)]
    return suffixes[-1] if suffixes and _LANGUAGE.fullmatch(suffixes[-1]) else ""
