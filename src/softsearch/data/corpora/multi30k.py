"""Multi30k task 1: captions of images (Elliott et al. 2016, 2017), from its pinned repository or from a folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pooch

from softsearch.data.corpora.base import FilePair, ParallelSource, TextForm
from softsearch.data.corpora.multi30k_sha256 import SHA256
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.option_checks import require_choice

UPSTREAM = "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/"
LANGUAGES = ("cs", "de", "en", "fr")
TEST_SETS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class Multi30k(ParallelSource):
    """29,000 captions to train on, 1,014 to validate on, about 1,000 in each test set.

    Args:
        root: a folder that has the files, plain or .gz; without it they are downloaded once and checked.
        variant: ``lc_tok`` is lower-cased, normalised and tokenised, as nearly all published BLEU is; ``raw`` is not.
        src_lang: the source language.
        tgt_lang: the target language.
        test_set: which test set the split ``test`` is.
        mirror: the address under which a server has the same files as the upstream repository.

    Raises:
        ConfigError: a value is not one of its choices, or the test set has no translation into a language.
    """

    root: str | Path | None = None
    variant: Literal["raw", "lc_tok"] = "lc_tok"
    src_lang: str = "en"
    tgt_lang: str = "de"
    test_set: str = TEST_SETS[0]
    mirror: str = UPSTREAM

    def __post_init__(self) -> None:
        """Checks the options."""
        super().__post_init__()
        require_choice("data.variant", self.variant, ("raw", "lc_tok"))
        require_choice("data.src_lang", self.src_lang, LANGUAGES)
        require_choice("data.tgt_lang", self.tgt_lang, LANGUAGES)
        require_choice("data.test_set", self.test_set, TEST_SETS)
        if self.root is not None and not isinstance(self.root, str | Path):
            raise ConfigError(f"data.root is {self.root!r}, expected a folder; change data.root")
        if not isinstance(self.mirror, str):
            raise ConfigError(f"data.mirror is {self.mirror!r}, expected an address; change data.mirror")
        if self.src_lang == self.tgt_lang:
            raise ConfigError(f"data.src_lang and data.tgt_lang are both {self.src_lang!r}; choose two languages")
        for lang in self._langs():
            if self._upstream(self.test_set, lang) not in SHA256:
                raise ConfigError(f"data.test_set is {self.test_set}, which has no {lang}; choose another test set")

    @property
    def text_form(self) -> TextForm:
        """The variant decides."""
        return "lc_tok" if self.variant == "lc_tok" else "plain"

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files in ``root``, or else those in ``cache_dir``, downloaded if need be.

        Raises:
            CorpusError: ``root`` lacks a file, or a file cannot be downloaded or is not the pinned one.
        """
        names = {"train": "train", "val": "val", "test": self.test_set}
        find = self._download if self.root is None else self._find
        src_lang, tgt_lang = self._langs()
        return {
            split: (find(name, src_lang, cache_dir), find(name, tgt_lang, cache_dir)) for split, name in names.items()
        }

    def _find(self, name: str, lang: str, _: Path) -> Path:
        root = Path(str(self.root))
        forms = ("lc.tok.", "lc.norm.tok.") if self.variant == "lc_tok" else ("",)
        candidates = [root / f"{name}.{form}{lang}{packed}" for form in forms for packed in ("", ".gz")]
        for path in candidates:
            if path.is_file():
                return path
        wanted = ", ".join(path.name for path in candidates)
        raise CorpusError(f"data.root={root} has none of {wanted} (data.variant={self.variant}); put one of them there")

    def _download(self, name: str, lang: str, cache_dir: Path) -> Path:
        path = self._upstream(name, lang)
        folder = cache_dir / "multi30k"
        store = pooch.create(folder, self.mirror, registry={path: f"sha256:{SHA256[path]}"}, retry_if_failed=1)
        try:
            return Path(store.fetch(path, downloader=pooch.HTTPDownloader(timeout=_SECONDS)))
        except (OSError, ValueError) as error:  # no connection, no such file, no room; another hash
            raise CorpusError(
                f"cannot fetch {path} from {self.mirror}: {error}; it is not in {folder} either. "
                "Without a network, put the files in a folder and set data.root=FOLDER"
            ) from error

    def _langs(self) -> tuple[str, str]:
        return self.src_lang, self.tgt_lang

    def _upstream(self, name: str, lang: str) -> str:
        if self.variant == "lc_tok":
            return f"data/task1/tok/{name}.lc.norm.tok.{lang}"
        return f"data/task1/raw/{name}.{lang}.gz"
