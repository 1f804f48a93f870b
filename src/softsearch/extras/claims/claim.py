"""Claims of papers, read from ``configs/claims/NAME.yaml``.

A new claim is another YAML file; it needs no code if the measures exist:

- ``runs``: overrides of ``train`` by the name of a run, after those in ``common`` and ``sizes``. Each run is
  trained with every seed of ``seeds``. ``init.ckpt=NAME`` starts from an earlier run of the claim, with the same seed.
- ``files``: files to create before the trainings, by name, for example for ``vectors.src=NAME``. A file is any class
  whose objects are called with its path and the cache folder (``softsearch.extras.claims.made_files``).
- ``measures``: tables by name. A measure is any class whose objects are called with the folders of the finished runs,
  ``{run: {seed: folder}}``, and return rows of plain values (``softsearch.extras.claims.measures.Measure``).
  Measures of models are functions (``softsearch.extras.claims.inspection.ModelMeasure``).
- ``tables``: the columns of each measure to show on the page, averaged over the seeds.
- ``published``, ``holds``: numbers from the paper, and comparisons that decide. Both name cells of tables, for example
  ``scores.bleu[run=rnnsearch] - scores.bleu[run=rnnencdec]`` (``softsearch.extras.claims.verdict``).
- ``figure``: the figure (``softsearch.extras.claims.table_chart.chart``), with the published numbers for its cells.
- ``names``: words for names of runs, tables, columns and other text in tables, used on the page and in the figure;
  those of frequent columns are in ``softsearch.extras.claims.claim_page``.
- ``changed``: what was changed after results of earlier trainings were known, in words.
- ``scales``: changes at ``quick``, ``cpu``, ``paper`` and ``smallest``: any of the keys above; null for a run that a
  scale does not have. At other scales, the claim is unchanged.

Then ``softsearch reproduce claim=NAME publish=docs/reproduce`` writes its page and the list of all claims;
``claim=[]`` rewrites all pages and figures, and the list including claims that have not been run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from softsearch.app import Parts, Section, choices, composed, nearest, read_options
from softsearch.errors import ConfigError
from softsearch.ranges import Count, NotNegative, Seed

FOLDER = "claims"


@dataclass(frozen=True, kw_only=True)
class Published(Section):
    """A number from the paper, and the cell with ours."""

    what: str
    value: float | str
    ours: str | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison(Section):
    """A test whether ``left`` is greater than ``right``.

    Args:
        says: the comparison in words.
        left: a cell, a sum and difference of cells, or a number.
        right: like ``left``.
        margin: the smallest difference that matters; smaller ones are inconclusive. By default that of the column in
            the claim's ``margins``.
        chance: what makes differences by chance. ``seeds``: a permutation test over the seeds (a t-test if one
            side is a number); in rows that tell their number of ``sentences``, also a bootstrap over seeds and
            sentences. ``sentences``: these models alone, by the column ``p`` in the rows of both cells, from a paired
            bootstrap, or by resampled sentences. ``members``: by ``members_p``, from permuted members of ensembles.
            ``construction``: it follows from arithmetic, and counts as none.
    """

    says: str
    left: str | float
    right: str | float = 0.0
    margin: NotNegative | None = None
    chance: Literal["seeds", "sentences", "members", "construction"] = "seeds"


@dataclass(frozen=True, kw_only=True)
class Figure(Section):
    """A figure of the rows of measures (``softsearch.extras.claims.table_chart.chart``).

    The rows have an additional column ``measure``.
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
    """Runs to train with each seed: overrides by name, after those of all runs."""

    seeds: tuple[Seed, ...]
    common: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    runs: Mapping[str, tuple[str, ...]]
    files: Parts = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Claim(Plan):
    """A claim of a paper, and how it is tested at one scale."""

    title: str
    source: str
    says: str
    differs: str
    changed: str = ""
    minutes: Count
    measures: Parts
    tables: Mapping[str, tuple[str, ...]]
    figure: Figure
    names: Mapping[str, str] = field(default_factory=dict)
    published: tuple[Published, ...] = ()
    margins: Mapping[str, NotNegative] = field(default_factory=dict)  # smallest differences that matter, by column
    holds: tuple[Comparison, ...]


def claim_names() -> list[str]:
    """Returns the names of all claims in Hydra's config folders."""
    return choices(FOLDER)


def read_claim(name: str, scale: str) -> Claim:
    """Reads a claim at a scale.

    Raises:
        ConfigError: there is no such claim, or the file is not a claim.
    """
    if name not in (names := claim_names()):
        raise ConfigError(f"there is no claim={name}; {nearest(name, names)}")
    try:
        config = composed(f"{FOLDER}/{name}")[FOLDER]  # Hydra puts it under the name of its folder
        OmegaConf.set_struct(config, False)  # a scale may have more runs
        scales = config.pop("scales", {})
        if scale == "gpu" and scales.get(scale) is None:
            raise ConfigError("it has no scale=gpu; use scale=cpu")
        merged = OmegaConf.merge(config, scales.get(scale, {}))
        assert isinstance(merged, DictConfig)
        merged.runs = {run: options for run, options in merged.runs.items() if options is not None}
        return read_options(merged, Claim)
    except (HydraException, OmegaConfBaseException, ConfigError) as error:
        raise ConfigError(f"claim={name}: {error}") from error
