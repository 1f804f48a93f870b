"""``sweep``, ``tune`` and ``compare``: searches for options with Optuna, and comparisons of results."""

from softsearch.commands import Command

_HERE = "softsearch.extras.sweep"
SWEEP = Command(
    "sweep", "Search for training options with Optuna", f"{_HERE}.sweep:sweep", "key=value", needs="lab,sweep"
)
TUNE = Command(
    "tune",
    "Find weights of an ensemble, a reranker or a language model, and search options",
    f"{_HERE}.tune:tune",
    "key=value",
    f"{_HERE}.options:Tune",
    "lab,sweep",
)
COMPARE = Command(
    "compare",
    "Compare runs, evaluations and sweeps in a table and figures",
    f"{_HERE}.compare:compare",
    "key=value",
    f"{_HERE}.options:Compare",
    "lab",
    ("table",),
)
