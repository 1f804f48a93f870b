"""Guard of an adapted model: what it has lost on other text than the text that it was adapted to."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from softsearch.app.config.build import search_maker
from softsearch.app.config.options import Evaluate
from softsearch.app.console import echo, progress
from softsearch.app.systems.texts import read_test_set
from softsearch.errors import ConfigError
from softsearch.evaluation.bootstrap import percentiles, resample
from softsearch.evaluation.measure import Evaluator
from softsearch.evaluation.metrics import Metric, facts, for_text
from softsearch.evaluation.systems import LabSystem
from softsearch.evaluation.test_set import HeldOutText


def read_guarded(options: Evaluate, systems: Sequence[LabSystem]) -> HeldOutText | None:
    """Reads the guarded text, if there is one.

    Raises:
        ConfigError: the number of systems to compare on it is not two.
        CorpusError: the text cannot be read.
    """
    if options.guard.old is None:
        return None
    if len(systems) != 2:
        raise ConfigError(
            f"guard compares an adapted model with the model before, but there are {len(systems)} systems; set "
            "ckpt='[ADAPTED,BEFORE]'"
        )
    return read_test_set(options, options.guard.old, systems, "guard.old='[x.en,x.de]'")


WITHIN, ABOVE, OPEN = "within the limit", "above the limit", "inconclusive"


class GuardResult(NamedTuple):
    """The loss of an adapted model, and whether it is too large."""

    described: str
    verdict: str


def guard(
    options: Evaluate, systems: Sequence[LabSystem], text: HeldOutText, metrics: Mapping[str, Metric]
) -> GuardResult:
    """Compares the first system with the second one on the guarded text, by the first metric.

    The 95 % interval of the loss is that of a paired bootstrap: both are scored on the same resampled sentences.
    """
    name, metric = next(iter(for_text(metrics, text.text_form, text.tgt_lang).items()))
    evaluator = Evaluator(text=text, progress=progress)
    echo(f"guard: translating {len(text.sources):,} sentences of {text.name} with both")
    make_search = search_maker(options.search)
    new, old = (
        resample(metric, metric.table(evaluator.translate(system, strategy).texts, text.references, text.sources))
        for system in systems
        for strategy in [make_search(system.tokenizers, system.max_length_factor)]
    )
    sign = 1 if metric.higher_is_better else -1
    lost, most = sign * (old.value - new.value), options.guard.max_loss
    low, high = percentiles(sign * (old.resamples - new.resamples), lost)
    verdict = WITHIN if high <= most else ABOVE if low > most else OPEN
    fact = facts({name: metric})[name]
    return GuardResult(
        f"guard: {name} on {text.name} was {fact.show(old.value)} and is {fact.show(new.value)}, a loss of "
        f"{fact.show(lost)} (95 %: {fact.show(low)} to {fact.show(high)}), at most {fact.show(most)}: {verdict}",
        verdict,
    )
