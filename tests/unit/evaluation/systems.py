"""A system of any step function, with a vocabulary of letters."""

from softsearch.evaluation.systems import LabSystem
from softsearch.search.interface import StepFunction
from softsearch.testing.models import TGT_VOCAB
from softsearch.text.tokenizer import train_tokenizer

TOKENIZER = train_tokenizer(["a b c d e f g h i j k l m"] * 3, kind="word", vocab_size=TGT_VOCAB)


def system_of(step_fn: StepFunction) -> LabSystem:
    """The system, which translates plain English to German."""
    return LabSystem(
        name="one",
        origin="here",
        backend="torch",
        architecture="rnnsearch",
        step_fn=step_fn,
        tokenizers=(TOKENIZER, TOKENIZER),
        parameters=1,
        size_bytes=4,
        text_form="plain",
        src_lang="en",
        tgt_lang="de",
        source=None,
    )
