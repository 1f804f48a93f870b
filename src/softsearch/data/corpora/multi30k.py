"""Multi30k task 1: image captions (Elliott et al. 2016, 2017), from the pinned repository or from a folder."""

from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

import pooch

from softsearch.data.corpora.base import FilePair, ParallelSource, TextForm, refuse_unread
from softsearch.data.preparation.cache_folder import made_folder
from softsearch.data.preparation.digests import digests_of
from softsearch.errors import ConfigError, CorpusError
from softsearch.ranges import AtLeastOne
from softsearch.text.corpus import read_lines, write_lines

UPSTREAM = "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/"
_REGISTRY = Path(__file__).with_name("multi30k_sha256.txt")
_SECONDS = 30  # timeout of a download

Language = Literal["cs", "de", "en", "fr"]
TestSet = Literal["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr"]


@dataclass(frozen=True, kw_only=True)
class Multi30k(ParallelSource):
    """29,000 captions for training, 1,014 for validation, about 1,000 in each test set.

    Args:
        root: a folder with the files, plain or .gz; without it they are downloaded once and checked.
        variant: ``lc_tok`` is lower-cased, normalised and tokenised, as for nearly all published BLEU; ``raw`` is not.
        test_set: the test set to use as the split ``test``.
        train_size: train only on this many pairs, the first ones.
        mirror: address of a server with the same files as the upstream repository.

    Raises:
        ConfigError: the languages are equal, or the test set lacks one of them.
    """

    root: str | Path | None = None
    variant: Literal["raw", "lc_tok"] = "lc_tok"
    src_lang: Language = "en"
    tgt_lang: Language = "de"
    test_set: TestSet = "test_2016_flickr"
    train_size: AtLeastOne | None = None
    mirror: str = UPSTREAM

    def __post_init__(self) -> None:
        """Checks that the files exist."""
        if self.src_lang == self.tgt_lang:
            raise ConfigError(f"data.src_lang and data.tgt_lang are both {self.src_lang!r}; choose two languages")
        if "cs" in (self.src_lang, self.tgt_lang) and "2017" in self.test_set:
            raise ConfigError(f"data.test_set is {self.test_set}, which has no cs; choose another test set")

    @property
    def text_form(self) -> TextForm:
        return "lc_tok" if self.variant == "lc_tok" else "plain"

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files in ``root``, or those in ``cache_dir``, downloaded if necessary.

        Raises:
            CorpusError: ``root`` lacks a file, or a file cannot be downloaded or is not the pinned one.
        """
        find = partial(self._download, cache_dir / "multi30k") if self.root is None else partial(self._find, self.root)
        names = {"train": "train", "val": "val", "test": self.test_set}
        files = {split: (find(name, self.src_lang), find(name, self.tgt_lang)) for split, name in names.items()}
        return files if self.train_size is None else {**files, "train": self._first_pairs(files["train"], cache_dir)}

    def _first_pairs(self, train: FilePair, cache_dir: Path) -> FilePair:
        names = [f"train.{lang}" for lang in (self.src_lang, self.tgt_lang)]

        def write(folder: Path) -> None:
            for name, path in zip(names, train, strict=True):
                write_lines(folder / name, islice(read_lines(path), self.train_size))

        folder = made_folder(cache_dir, "multi30k", repr((self.train_size, *digests_of(train, cache_dir))), write)
        return folder / names[0], folder / names[1]

    def _find(self, root: str | Path, name: str, lang: str) -> Path:
        refuse_unread("root", root)
        forms = ("lc.tok.", "lc.norm.tok.") if self.variant == "lc_tok" else ("",)
        candidates = [Path(root, f"{name}.{form}{lang}{packed}") for form in forms for packed in ("", ".gz")]
        for path in candidates:
            if path.is_file():
                return path
        wanted = ", ".join(path.name for path in candidates)
        raise CorpusError(f"data.root={root} has none of {wanted} (data.variant={self.variant}); put one of them there")

    def _download(self, folder: Path, name: str, lang: str) -> Path:
        path = f"data/task1/tok/{name}.lc.norm.tok.{lang}"
        if self.variant == "raw":
            path = f"data/task1/raw/{name}.{lang}.gz"
        store = pooch.create(folder, self.mirror, retry_if_failed=1)
        store.load_registry(_REGISTRY)
        try:
            return Path(store.fetch(path, downloader=pooch.HTTPDownloader(timeout=_SECONDS)))
        except (OSError, ValueError) as error:  # no connection, no such file, no room; or a wrong hash
            raise CorpusError(
                f"cannot fetch {path} from {self.mirror}: {error}; it is not in {folder} either. "
                "Without a network, put the files in a folder and set data.root=FOLDER"
            ) from error
