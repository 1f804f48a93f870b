"""Facts of a bundle, for clients."""

from pathlib import Path

import pytest

from softsearch.extras.serve.models import model_facts
from softsearch.runtime.bundle import Bundle


@pytest.mark.parametrize("folder", ["bundle", "single"])
def test_facts_come_from_the_manifest(folder: str, repo_root: Path) -> None:
    bundle = Bundle.open(repo_root / "tests/golden" / folder)
    facts = model_facts("demo", bundle)
    assert (facts.name, facts.src_lang, facts.tgt_lang, facts.has_attention) == ("demo", "en", "de", True)
    assert facts.search == bundle.manifest.search_kind
    assert facts.beam == bundle.manifest.search["beam"]
    assert facts.max_src_tokens == bundle.manifest.max_src_tokens
    assert facts.sha256 == bundle.sha256


def test_a_bundle_that_says_nothing_of_its_training_has_facts(bundle_dir: Path) -> None:
    facts = model_facts("small", Bundle.open(bundle_dir))
    assert (facts.architecture, facts.src_lang, facts.text_form, facts.parameters) == ("unknown", "", "plain", "")
