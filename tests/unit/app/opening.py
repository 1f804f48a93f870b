"""A small checkpoint, and every command that opens one, in this process."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.build import build_model
from softsearch.app.config.composition import composed
from softsearch.app.config.options import Dictionary, Export, Score
from softsearch.app.config.validation import plain, read_options
from softsearch.app.dictionary import dictionary
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.app.export import export
from softsearch.app.score import score
from softsearch.app.systems.weights_file import TunedWeights
from softsearch.extras.sweep.options import Tune
from softsearch.extras.sweep.tune import tune
from softsearch.testing.models import model_config
from softsearch.text.tokenizer import train_tokenizer
from softsearch.training.checkpoints.checkpoint_contents import ORIGIN, SaveOrigin
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO
from tests.support.written import save_unchecked

SRC, TGT = ["a b c", "d e f", "c b", "f"], ["A B C", "D E F", "C B", "F"]


@dataclass(frozen=True)
class Home:
    """A folder with a good checkpoint, a place for another one, and the commands that open that one."""

    folder: Path
    other: Path  # also the only step checkpoint of its folder
    checkpoint: dict[str, Any]  # the good one's contents
    commands: dict[str, Callable[[], None]]

    def save(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Writes the other checkpoint: the good one with a change, and the right hash."""
        changed = copy.deepcopy(self.checkpoint)
        change(changed)
        save_unchecked(changed, self.other)


def make_home(folder: Path) -> Home:
    """Writes the good checkpoint."""
    for split in ("train", "val", "test"):
        for side, lines in (("en", SRC), ("de", TGT)):
            (folder / f"{split}.{side}").write_text("".join(f"{line}\n" for line in lines))
    data = [f"data.{split}=[{folder / split}.en,{folder / split}.de]" for split in ("train", "val", "test")]
    given = composed("train", "data=parallel", *data, "tokenizer=word", "name=small", f"run_dir={folder}")
    given.model = model_config("rnnsearch")
    tokenizer = train_tokenizer([*SRC, *TGT], kind="word", vocab_size=16)
    torch.manual_seed(0)
    model = build_model(given.model, (tokenizer, tokenizer))
    checkpoint = {
        ORIGIN: SaveOrigin(plain(given), (tokenizer, tokenizer)).origin,
        "state_dict": {f"model.{name}": weight for name, weight in model.state_dict().items()},
        "optimizer_states": [{}],
        "global_step": 1,
    }
    good, other = (folder / name for name in ("good/checkpoints/last.ckpt", "other/checkpoints/step-1.ckpt"))
    for path in (good, other):
        path.parent.mkdir(parents=True)
        OmegaConf.save(given, path.parent.parent / "config.yaml")
    AtomicCheckpointIO().save_checkpoint(checkpoint, good)
    return Home(folder, other, checkpoint, _commands(folder, good, other))


def _commands(folder: Path, good: Path, other: Path) -> dict[str, Callable[[], None]]:
    weights = folder / "weights.json"
    TunedWeights("softsearch.search.Greedy", {"ckpt": [str(other)], "bundle": []}, validation={}).save(weights)
    places = (f"run_dir={folder / 'out'}", f"cache_dir={folder / 'cache'}")
    short = "search.max_length_factor=1"
    calls: dict[str, tuple[Callable[[DictConfig], None], str, tuple[str, ...]]] = {
        "evaluate": (evaluate, "evaluate", (f"ckpt={other}", "search=greedy", short)),
        "average": (evaluate, "evaluate", (f"ckpt={other.parent / 'last.ckpt'}", "average=1", "search=greedy", short)),
        "language_model": (evaluate, "evaluate", (f"ckpt={good}", "ensemble=log_probs", f"language_model={other}")),
        "rerank": (evaluate, "evaluate", (f"ckpt={good}", "search=rerank", f"search.models=[{other}]")),
        "weights": (evaluate, "evaluate", (f"weights={weights}", "search=greedy", short)),
        "score": (lambda config: score(read_options(config, Score)), "score", (f"ckpt={other}",)),
        "tune": (lambda config: tune(read_options(config, Tune)), "tune", (f"ckpt={other}", "searches=1", short)),
    }
    commands = {
        name: partial(body, composed(config, *options, *places)) for name, (body, config, options) in calls.items()
    }
    cache, bundle, words = places[1], folder / "bundle", folder / "words.tsv"
    return commands | {
        "export": partial(
            export, read_options(composed("export", f"ckpt={other}", f"out={bundle}", "overwrite=true", cache), Export)
        ),
        "dictionary": partial(
            dictionary, read_options(composed("dictionary", f"ckpt={other}", f"out={words}", cache), Dictionary)
        ),
    }
