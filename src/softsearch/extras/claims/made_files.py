"""Files that are created for a claim's trainings, such as word vectors from other text."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from omegaconf import DictConfig, OmegaConf

from softsearch.app import Parts, build, flatten, plain
from softsearch.data import ParallelSource
from softsearch.errors import ConfigError
from softsearch.extras.claims.measures import digest
from softsearch.extras.claims.options import Trainings
from softsearch.files import new_file
from softsearch.ranges import AtLeastOne, Count
from softsearch.text import read_parallel

log = logging.getLogger(__name__)
_MULTI30K = "softsearch.data.Multi30k"


def made_file(name: str, files: Parts, options: Trainings) -> Path:
    """Returns the path of a claim's file; its name has the hash of its options."""
    node = files[name]
    assert node is not None  # make_files skips such files, and nothing else uses them
    return options.runs_dir / "files" / f"{name}-{digest(plain(node))}"


def make_files(files: Parts, options: Trainings) -> None:
    """Creates missing files.

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


def with_root(measure: DictConfig, multi30k: Path | None) -> DictConfig:
    """Returns the config of a measure whose options read Multi30k from a folder, if it is given."""
    options = measure.get("options", [])
    if multi30k is None or "data=multi30k" not in options:
        return measure
    found = measure.copy()
    found.options = [*options, f"data.root='{multi30k}'"]
    return found


def without_root(values: dict[str, Any], multi30k: Path | None) -> list[str]:
    """Returns the keys of Multi30k sources without a folder in a config, if ``multi30k`` is one."""
    nodes = [(key, node) for key, node in flatten(values) if isinstance(node, dict) and multi30k is not None]
    return [key for key, node in nodes if node.get("_target_") == _MULTI30K and node.get("root") is None]


@dataclass(frozen=True, kw_only=True)
class WordVectors:
    """Word vectors from gensim's skip-gram model (Mikolov et al. 2013), in word2vec's text format.

    Args:
        data: the data with the training text.
        side: the side of the text.
        skip: number of pairs at its start to skip.
        dim: width of the vectors.
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
        model = Word2Vec(
            text[self.skip :], seed=1, workers=1, **options
        )  # with several threads, results would not be reproducible
        model.wv.save_word2vec_format(str(path))
