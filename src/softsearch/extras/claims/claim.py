"""Claims of papers, as ``configs/claims/NAME.yaml`` states them.

A new claim is one more YAML, which needs no code where the measures exist:

- ``runs``: overrides of ``train`` by the name of a run. Those of ``common`` and ``sizes`` come before them. Each run is
  trained with every seed of ``seeds``. ``init.ckpt=NAME`` starts from an earlier run of the claim, with the same seed.
- ``files``: what is made before the trainings, by name: ``vectors.src=NAME`` reads it. A file is any class that is
  called with its path and the cache folder (:mod:`softsearch.extras.claims.made_files`).
- ``measures``: tables by name. A measure is any class that is called with the folders of the finished runs, ``{run:
  {seed: folder}}``, and returns rows of plain values (:data:`softsearch.extras.claims.measures.Measure`). Of a model
  it is a function, see :class:`softsearch.extras.claims.inspection.ModelMeasure`.
- ``tables``: the columns of a measure that the page shows, averaged over the seeds.
- ``published``, ``holds``: numbers of the paper, and comparisons that decide. Both name cells of the tables, as in
  ``scores.bleu[run=rnnsearch] - scores.bleu[run=rnnencdec]`` (:mod:`softsearch.extras.claims.verdict`).
- ``figure``: what is drawn (:func:`softsearch.extras.claims.table_chart.chart`), with the published numbers whose
  cells are in it.
- ``names``: words for the names of runs, tables, columns and other text in the tables, which the page and the figure
  have instead of them; those of frequent columns are in :mod:`softsearch.extras.claims.claim_page`.
- ``scales``: what differs at ``quick``, ``cpu``, ``paper`` and ``smallest``: any of the keys above; null for a run that
  a scale lacks. A scale that is not there is the claim as it stands above.

Then ``softsearch reproduce claim=NAME publish=docs/reproduce`` writes its page and the list of all claims, and
``claim=[]`` instead of a name writes all pages and figures again, and the list with claims that have not been run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hydra import compose
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from softsearch.app.config.composition import config_loader
from softsearch.app.config.options import Parts, Section
from softsearch.app.config.validation import nearest, read_options
from softsearch.errors import ConfigError
from softsearch.ranges import Count, NotNegative, Seed

FOLDER = "claims"


@dataclass(frozen=True, kw_only=True)
class Published(Section):
    """A number of the paper, and the cell that has ours."""

    what: str
    value: float | str
    ours: str | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison(Section):
    """A comparison that decides whether ``left`` is greater than ``right``.

    Args:
        says: the comparison in words.
        left: a cell, a sum and difference of cells, or a number.
        right: the same.
        margin: the smallest difference that matters, below which nothing is decided; by default that of the column in
            the claim's ``margins``.
        chance: what rules chance out: ``seeds`` (a permutation test of the seeds' values), the column ``p`` of both
            cells' rows (a paired bootstrap's), or ``none`` for what is not drawn by chance: all seeds must agree.
            ``interval``: ``left`` reaches a number itself, or does not by the upper end of its interval.
    """

    says: str
    left: str | float
    right: str | float = 0.0
    margin: NotNegative | None = None
    chance: Literal["seeds", "p", "interval", "none"] = "seeds"


@dataclass(frozen=True, kw_only=True)
class Figure(Section):
    """A picture of the rows of measures, see :func:`softsearch.extras.claims.table_chart.chart`.

    The rows have a further column, ``measure``.
    """

    measure: str | tuple[str, ...]
    kind: Literal["line", "dots", "scatter", "heatmap"]
    x: str | tuple[str, ...]
    y: str
    value: str | None = None
    series: str | None = None
    panel: str | None = None
    only: Mapping[str, tuple[str, ...]] | None = None
    x_log: bool = False
    y_log: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Runs to train: overrides by name, after those of all runs, with each seed."""

    seeds: tuple[Seed, ...]
    common: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    runs: Mapping[str, tuple[str, ...]]
    files: Parts = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Claim(Plan):
    """What a paper says, and how it is tried at one scale."""

    title: str
    source: str
    says: str
    differs: str
    minutes: Count
    measures: Parts
    tables: Mapping[str, tuple[str, ...]]
    figure: Figure
    names: Mapping[str, str] = field(default_factory=dict)
    published: tuple[Published, ...] = ()
    margins: Mapping[str, NotNegative] = field(default_factory=dict)  # the smallest differences that matter, by column
    holds: tuple[Comparison, ...]


def claim_names() -> list[str]:
    """The names of all claims in the folders where Hydra finds configs."""
    with config_loader() as loader:
        return sorted(loader.get_group_options(FOLDER))


def read_claim(name: str, scale: str) -> Claim:
    """A claim at a scale.

    Raises:
        ConfigError: there is no such claim, or it is not one.
    """
    if name not in (names := claim_names()):
        raise ConfigError(f"there is no claim={name}; {nearest(name, names)}")
    try:
        with config_loader():
            config = compose(f"{FOLDER}/{name}")[FOLDER]  # Hydra packs it by its folder
        OmegaConf.set_struct(config, False)  # a scale may have more runs
        scales = config.pop("scales", {})
        merged = OmegaConf.merge(config, scales.get(scale, {}))
        assert isinstance(merged, DictConfig)
        merged.runs = {run: options for run, options in merged.runs.items() if options is not None}
        return read_options(merged, Claim)
    except (HydraException, OmegaConfBaseException, ConfigError) as error:
        raise ConfigError(f"claim={name}: {error}") from error
