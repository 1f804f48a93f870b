"""Files that a claim's trainings read and that are made for them, such as word vectors of other text."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from omegaconf import OmegaConf

from softsearch.app.config.options import Parts
from softsearch.app.config.validation import build, flatten, plain
from softsearch.data.corpora.base import ParallelSource
from softsearch.errors import ConfigError
from softsearch.extras.claims.measures import digest
from softsearch.extras.claims.options import Trainings
from softsearch.files import new_file
from softsearch.ranges import AtLeastOne, Count
from softsearch.text.filters import read_parallel

log = logging.getLogger(__name__)
_MULTI30K = "softsearch.data.corpora.multi30k.Multi30k"


def made_file(name: str, files: Parts, options: Trainings) -> Path:
    """Where a file of a claim is, which has the hash of how it is made in its name."""
    node = files[name]
    assert node is not None  # make_files leaves such out, and nothing else asks for one
    return options.runs_dir / "files" / f"{name}-{digest(plain(node))}"


def make_files(files: Parts, options: Trainings) -> None:
    """Makes the files that are not there yet.

    Raises:
        ConfigError: a file's options are wrong.
        SoftsearchError: its text cannot be read.
    """
    for name, given in files.items():
        if given is None:
            continue
        path, node = made_file(name, files, options), OmegaConf.create(plain(given))
        if path.is_file():
            continue
        for key in without_root(plain(node), options.multi30k):
            OmegaConf.update(node, f"{key}.root", str(options.multi30k))
        log.info("making %s", path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as file:
            build(node)(Path(file.name), options.cache_dir)


def without_root(values: dict[str, Any], multi30k: Path | None) -> list[str]:
    """The sources of Multi30k in a config that name no folder, where ``multi30k`` is one."""
    nodes = [(key, node) for key, node in flatten(values) if isinstance(node, dict) and multi30k is not None]
    return [key for key, node in nodes if node.get("_target_") == _MULTI30K and node.get("root") is None]


@dataclass(frozen=True, kw_only=True)
class WordVectors:
    """Vectors of words by gensim's skip-gram model (Mikolov et al. 2013), in word2vec's text format.

    Args:
        data: whose training text they are of.
        side: of it.
        skip: pairs at its start that are left out.
        dim: width.
    """

    data: ParallelSource
    side: Literal["src", "tgt"]
    skip: Count = 0
    dim: AtLeastOne = 128

    def __call__(self, path: Path, cache_dir: Path) -> None:
        """Writes the file.

        Raises:
            ConfigError: gensim is not installed.
        """
        try:
            from gensim.models import Word2Vec
        except ImportError as error:
            raise ConfigError("word vectors need gensim; run: pip install gensim") from error
        logging.getLogger("gensim").setLevel(logging.WARNING)  # it reports each epoch
        corpora = [read_parallel(*pair) for pair in self.data.train_files(cache_dir)]
        text = [line.split() for corpus in corpora for line in (corpus.src if self.side == "src" else corpus.tgt)]
        options = {"vector_size": self.dim, "sg": 1, "window": 5, "min_count": 2, "epochs": 10}
        model = Word2Vec(text[self.skip :], seed=1, workers=1, **options)  # several threads would not do the same again
        model.wv.save_word2vec_format(str(path))
