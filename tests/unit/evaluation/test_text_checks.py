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
        (("en", "ja"), ("en", "fr"), "their scores mean nothing together"),
        (("de", "en"), ("en", "de"), "are the files swapped?"),
        (("", "en"), ("", "de"), "their scores mean nothing together"),
        (("fr", "de"), ("en", "de"), "their scores mean nothing together"),
    ],
)
def test_other_languages_are_named(text: Languages, model: Languages, advice: str | None) -> None:
    problems = language_problems("the test set x", text, {"the model m": model})
    both = f"the test set x is {'-'.join(text)}, but the model m is {'-'.join(model)}; {advice}"
    assert problems == [both] * (advice is not None)
