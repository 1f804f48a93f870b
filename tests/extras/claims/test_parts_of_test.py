"""Parts of the test sentences that differ in one thing alone."""

from types import SimpleNamespace
from typing import Any

import pytest

from softsearch.extras.claims import parts_of_test
from softsearch.extras.claims.parts_of_test import by_unknown
from softsearch.text.vocabulary import UNK


class Words:
    """A tokenizer that does not know words with x."""

    def encode(self, line: str) -> list[int]:
        return [UNK if "x" in word else 9 for word in line.split()]


def test_sources_with_and_without_unknown_words_have_equal_lengths_and_as_many_unknown_references(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = SimpleNamespace(tokenizers=(Words(), Words()), source=SimpleNamespace(text_form="lc_tok"))
    monkeypatch.setattr(parts_of_test.lab, "Run", lambda _: run)
    pairs = [
        ("a b", "A B"),
        ("a x", "A B"),
        ("b x", "A B"),  # a second one of two words, where only one source has none
        ("a b c", "A x"),
        ("a b x", "A x"),
        ("a x c", "A C"),  # its reference has none, but that of the only other source of three words does
        ("a b c d", "A"),
    ]
    sources, references = ([f"{line} e f g h" for line in side] for side in zip(*pairs, strict=True))
    report: Any = SimpleNamespace(sources=sources, references=references, tgt_lang="de")
    hypotheses = [f"{line} e f g h" for line in ("A B", "A C", "A C", "A x", "A C", "A C", "A")]
    system: Any = SimpleNamespace(origin="", hypotheses=hypotheses)
    rows = {row["unknown"]: row for row in by_unknown(system, report)}
    assert {name: (row["sentences"], row["words"]) for name, row in rows.items()} == {
        "none": (2, 6.5),
        "some": (2, 6.5),
    }
    assert rows["none"]["bleu"] == pytest.approx(100)
    assert rows["some"]["bleu"] < 100
