"""Languages of texts and models are compared by one check."""

import pytest

from softsearch.evaluation.text_checks import Languages, language_problems


@pytest.mark.parametrize(
    ("text", "model", "advice"),
    [
        (("en", "de"), ("en", "de"), None),
        (("en", "deu"), ("en_GB", "de-AT"), None),
        (("en", "zho"), ("en", "zh-Hans"), None),
        (("en", ""), ("en", "fr"), None),
        (("en+fr", "de"), ("fr", "de"), None),
        (("en", "ja"), ("en", "fr"), "scores would be meaningless"),
        (("de", "en"), ("en", "de"), "are the files swapped?"),
        (("", "en"), ("", "de"), "scores would be meaningless"),
        (("fr", "de"), ("en", "de"), "scores would be meaningless"),
    ],
)
def test_other_languages_are_named(text: Languages, model: Languages, advice: str | None) -> None:
    problems = language_problems("the test set x", text, {"the model m": model})
    both = f"the test set x is {'-'.join(text)}, but the model m is {'-'.join(model)}; {advice}"
    assert problems == [both] * (advice is not None)
