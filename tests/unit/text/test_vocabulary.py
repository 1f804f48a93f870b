"""EOS is added in one place."""

import re
from pathlib import Path

import softsearch
from softsearch.text.vocabulary import EOS, with_eos


def test_only_one_function_appends_eos_to_ids() -> None:
    assert with_eos((7, 8)) == [7, 8, EOS]
    assert with_eos([]) == [EOS]
    package = Path(softsearch.__file__).parent
    appends = re.compile(r"\[\*[^\]\n]*\bEOS\]|\(\*[^)\n]*\bEOS\)|\+ [\[(]EOS\b|append\(EOS\)")
    files = [path.relative_to(package).as_posix() for path in package.rglob("*.py") if appends.search(path.read_text())]
    assert files == ["text/vocabulary.py"]
