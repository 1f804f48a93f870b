"""Small models on the generated corpus, trained step by step, so that a notebook can inspect them between steps."""

from softsearch import lab

_OPTIONS = (
    "name=course",
    "trainer=cpu",
    "optimizer=muon",
    "optimizer.lr=0.006",
    "scheduler.warmup_steps=30",
    "loss.bfloat16=false",
    "loss.smoothing=0",
    "tokenizer.vocab_size=300",
    "batching.tokens=1200",
)
_GENERATED = ("data.train_size=6000", "data.val_size=200", "data.test_size=200")


class SmallRun(lab.Training):
    """A training of the course.

    Args:
        options: options of ``train``, such as ``model=rnnsearch``. By default, the corpus is generated and has 6,000
            pairs, the vocabulary has 300 pieces, the optimizer is Muon, and there is no label smoothing.

    Raises:
        ConfigError: an option is wrong.
    """

    def __init__(self, *options: str) -> None:
        generated = () if any(option.startswith("data=") for option in options) else _GENERATED
        super().__init__(*_OPTIONS, *generated, *options)
