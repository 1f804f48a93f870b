"""Parts of a run that are called at every step."""

from functools import partial

from omegaconf import OmegaConf

from softsearch.app.config.validation import build
from softsearch.training.objectives.scheduled_sampling import linear, scheduled_sampling


def test_a_method_is_called_without_hydras_checks() -> None:
    module = "softsearch.training.objectives.scheduled_sampling"
    decay = {"_target_": f"{module}.linear", "_partial_": True, "c": 0.5}
    node = {"_target_": f"{module}.scheduled_sampling", "_partial_": True, "decay": decay}
    method = build(OmegaConf.create(node))
    assert (type(method), method.func) == (partial, scheduled_sampling)
    assert (type(method.keywords["decay"]), method.keywords["decay"].func) == (partial, linear)
    assert method.keywords["decay"](1) == 0.5
