"""``sweep``, ``tune`` and ``compare``: options searched with Optuna, and results side by side."""

from softsearch.commands import Command

_HERE = "softsearch.extras.sweep"
SWEEP = Command(
    "sweep", "Searches options of training with Optuna", f"{_HERE}.sweep:sweep", "key=value", needs="lab,sweep"
)
TUNE = Command(
    "tune",
    "Finds the weights of an ensemble, a reranker or a language model, and options of the search",
    f"{_HERE}.tune:tune",
    "key=value",
    f"{_HERE}.options:Tune",
    "lab,sweep",
)
COMPARE = Command(
    "compare",
    "Compares runs, evaluations and sweeps in a table and pictures",
    f"{_HERE}.compare:compare",
    "key=value",
    f"{_HERE}.options:Compare",
    "lab",
)
