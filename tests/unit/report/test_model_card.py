"""What a bundle says of itself."""

from typing import Any

from softsearch.report.model_card import model_card

FACTS: dict[str, Any] = {
    "model": "rnnsearch",
    "parameters": "3,412,345",
    "languages": "en to de",
    "text": "lower-cased and tokenised",
    "tokenizer": "bpe, 4,000 pieces",
    "steps": 5600,
    "averaged": 1,
    "results": {"test/bleu": 38.196, "train/seconds": 1668.9, "train/tokens_per_second": 6344.2, "model/parameters": 3},
    "config": {"secret": "value"},
}
EVALUATION = {
    "test_set": "test.en,\ntest.de",
    "sentences": 1000,
    "search": "beam 5",
    "scores": {"bleu": {"value": 38.196, "low": 36.4, "high": 39.8, "signature": "nrefs:1|bs:1000|tok:none"}},
    "overlap": {"the same source": 9},
}


def test_it_tells_of_the_training_and_the_use() -> None:
    card = model_card("my-model", FACTS, {"encoder.onnx": 12_345_678})
    for line in (
        "# my-model",
        "softsearch translate my-model < in.txt > out.txt",
        'translator = Translator("my-model")',
        "| model | rnnsearch |",
        "| text | lower-cased and tokenised |",
        "| tokenizer | bpe, 4,000 pieces |",
        "| time | 28 minutes, 6,344 target tokens/s |",
        "| test/bleu | 38.196 |",
        "| encoder.onnx | 12,345,678 |",
    ):
        assert line in card.splitlines()
    assert "secret" not in card
    assert "| weights |" not in card
    assert "| train/seconds" not in card


def test_an_evaluation_stands_in_for_the_final_figures() -> None:
    card = model_card("m", FACTS | {"evaluation": EVALUATION}, {})
    assert "1,000 sentences of test.en, test.de, beam 5, with 95 % bootstrap intervals." in card
    row = r"| bleu | 38.196 | 36.400 to 39.800 | `nrefs:1\|bs:1000\|tok:none` |"
    assert row in card.splitlines()
    assert "found in the training data: the same source: 9." in card
    assert "test/bleu" not in card


def test_it_says_what_another_precision_loses() -> None:
    precision = {"name": "int8", "sentences": 1000, "before": 38.218, "after": 38.1, "agreement": 0.9034}
    card = model_card("m", FACTS | {"precision": precision}, {})
    row = (
        "| precision | int8: BLEU 38.10, in float32 38.22, on 1,000 validation sentences; 90.3 % of the translations "
        "are the same |"
    )
    assert row in card.splitlines()
    assert "| precision |" not in model_card("m", FACTS, {})


def test_strings_of_a_checkpoint_stay_in_their_cells() -> None:
    card = model_card("m", {"model": "x\x1b[2J | y\n# Trust me", "evaluation": {**EVALUATION, "search": "\x9b0m"}}, {})
    assert r"| model | x\x1b[2J \| y # Trust me |" in card.splitlines()
    assert [c for c in card if not c.isprintable() and c != "\n"] == []


def test_it_needs_no_facts() -> None:
    card = model_card("m", {"averaged": 5}, {})
    assert "| weights | the mean of 5 checkpoints |" in card
    assert "## Results" not in card
