"""Aligned words counted, against a loop over single sentences that steps by itself."""

from collections import Counter

import pytest
import torch

from softsearch.errors import ConfigError
from softsearch.evaluation.attention_counts import attention_counts
from softsearch.evaluation.torch_backend import TorchStepFunction
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import BOS, EOS, UNK
from tests.contract.models import TGT_VOCAB, small_model

KNOWN = "a b c d e f g h i j k l m"
WORDS = train_tokenizer([KNOWN] * 3, kind="word", vocab_size=TGT_VOCAB)
PAIRS = [("a b Rex d", "e Pudel a"), ("c", "c c"), ("x y a", "b new one"), ("Rex", "Rex"), ("m l k", "f")] * 2


@pytest.mark.parametrize("name", ["rnnsearch", "transformer_tiny"])
@pytest.mark.parametrize("reverse", [(False, False), (True, False), (False, True)])
def test_counts_are_those_of_a_loop(name: str, reverse: tuple[bool, bool]) -> None:
    assert WORDS.vocab_size == TGT_VOCAB
    model = small_model(name, seed=3)
    tokenizers = tuple(SentencePieceTokenizer(WORDS.model, reverse=side) for side in reverse)
    expected: Counter[tuple[str, str]] = Counter()
    for pair in PAIRS:
        read, written = (text.split()[:: -1 if turned else 1] for text, turned in zip(pair, reverse, strict=True))
        ids = [[WORDS.encode(word)[0] for word in words] for words in (read, written)]
        state, token = model.encode(torch.tensor([[*ids[0], EOS]])), BOS
        for place, word in enumerate(written):
            with torch.no_grad():
                output = model.decoder.step(torch.tensor([token]), state)
            looked_at = read[int(output.alignments[0, : len(read)].argmax())]
            expected[looked_at, word] += 1
            state, token = output.state, ids[1][place]
    done: list[int] = []
    found = attention_counts(TorchStepFunction(model), tokenizers, PAIRS, on_done=done.append)  # type: ignore[arg-type]
    assert found == expected
    assert sum(done) == len(PAIRS)
    assert any(WORDS.encode(a) == [UNK] for a, _ in found)


def test_a_model_without_attention_is_refused() -> None:
    with pytest.raises(ConfigError, match="the model has no attention"):
        attention_counts(TorchStepFunction(small_model("gru")), (WORDS, WORDS), PAIRS)


def test_smaller_units_than_words_are_refused() -> None:
    pieces = train_tokenizer(["abc def ghi jkl m"] * 3, kind="char", vocab_size=TGT_VOCAB)
    with pytest.raises(ConfigError, match="smaller units than words"):
        attention_counts(TorchStepFunction(small_model("rnnsearch")), (WORDS, pieces), PAIRS)


def test_no_text_has_no_counts() -> None:
    assert attention_counts(TorchStepFunction(small_model("rnnsearch")), (WORDS, WORDS), []) == Counter()
