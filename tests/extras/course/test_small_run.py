"""Small models that a notebook trains step by step."""

from pathlib import Path

import pytest
import torch

from softsearch.errors import ConfigError
from softsearch.extras.course.small_run import SmallRun
from softsearch.search.greedy import Greedy

LINES = ["a b c d", "b c d a", "c d a b", "d a b c"]


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A model, and a text of one's own, in which the target is the source."""
    monkeypatch.setenv("SOFTSEARCH_CACHE", str(tmp_path))
    files = [tmp_path / f"text.{lang}" for lang in ("en", "de")]
    for file in files:
        file.write_text("".join(f"{line}\n" for line in LINES * 10), encoding="utf-8")
    both = f"[{files[0]},{files[1]}]"
    data = ["data=parallel", f"data.train={both}", f"data.val={both}", "tokenizer=word", "tokenizer.vocab_size=8"]
    return ["model=rnn", "model.dropout=0", "model.hidden_dim=16", "model.embeddings.dim=16", *data]


def test_steps_lower_the_loss_until_the_model_translates(options: list[str]) -> None:
    run = SmallRun(*options)
    losses = list(run.train(100))
    assert losses[-1] < 0.2 * losses[0]
    assert run.translate(LINES) == run.translate(LINES, Greedy()) == LINES
    batch = run.batch(LINES[:1], LINES[1:2])
    words = [tokenizer.decode(ids[0].tolist()) for tokenizer, ids in zip(run.tokenizers, batch[:2], strict=True)]
    assert words == LINES[:2]


def test_a_run_is_repeated_by_its_seed_and_may_be_looked_at_between_steps(options: list[str]) -> None:
    run, again = SmallRun(*options), SmallRun(*options)
    watched = [(loss, run.translate(LINES[:1])) for loss in run.train(4)]
    assert [loss for loss, _ in watched] == list(again.train(4))
    assert all(torch.equal(a, b) for a, b in zip(run.model.parameters(), again.model.parameters(), strict=True))


def test_a_wrong_option_is_refused(options: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"model\.dropout is 2"):
        SmallRun(*options, "model.dropout=2")
