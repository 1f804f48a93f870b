"""Limits with which nothing would be trained are named by their keys, and all mistakes at once."""

import pytest

from softsearch.app.config.composition import composed
from softsearch.app.config.resolvers import share
from softsearch.app.config.validation import plain
from softsearch.app.train.parts import build_parts, check_limits
from softsearch.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            (
                [f"{key}={zero}"],
                rf"{key.lstrip('+')} is {zero}, so nothing is trained; set {key.lstrip('+')}=N, at least 1",
            )
            for key, zero in (
                ("trainer.max_steps", "0"),
                ("trainer.max_epochs", "0"),
                ("+trainer.limit_train_batches", "0"),
                ("+trainer.limit_train_batches", "0.0"),
            )
        ),
        (
            ["trainer.max_steps=-1", "scheduler.warmup_steps=9"],
            r"trainer.max_steps is -1, .*set trainer.max_steps=N .*, or use scheduler=inverse_sqrt",
        ),
        (["trainer.max_steps=-1", "scheduler=cosine"], r"trainer.max_steps is -1, .*set trainer.max_steps=N"),
        (["+trainer.overfit_batches=1"], r"set debug=overfit batching.batches=N"),
        (["debug=overfit", "+trainer.overfit_batches=0.5"], r"set debug=overfit batching.batches=N"),
        (["trainer.max_steps=-1", "scheduler=constant", "scheduler.warmup_steps=9", "trainer.max_epochs=3"], None),
    ],
)
def test_limits_without_training(options: list[str], message: str | None) -> None:
    config = composed("train", "model=gru", "name=x", "run_dir=x", *options)
    if message is None:
        check_limits(plain(config))
    else:
        with pytest.raises(ConfigError, match=message):
            check_limits(plain(config))


def test_a_share_of_no_end() -> None:
    with pytest.raises(ConfigError, match=r"trainer.max_steps is -1, .*set trainer.max_steps=N"):
        share(0.5, -1)


def test_all_mistakes_are_named_at_once() -> None:
    wrong = ("optimizer.lr=x", "search.beam=0", "callbacks.last.keep=0", "model.encoder.dropout=2")
    with pytest.raises(ConfigError, match=r"^4 options are wrong:\n  model\.encoder\.dropout is 2 ") as refused:
        build_parts(composed("train", "model=rnnsearch", "trainer=cpu", "name=x", "run_dir=x", *wrong))
    for key in ("optimizer.lr", "search.beam", "callbacks.last.keep"):
        assert f"\n  {key} is " in str(refused.value)
    with pytest.raises(ConfigError, match=r"^search\.beam is 0 "):
        build_parts(composed("train", "model=rnnsearch", "trainer=cpu", "name=x", "run_dir=x", "search.beam=0"))
