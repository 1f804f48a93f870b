"""The command."""

from pathlib import Path

import pytest
from my_attention.command import MyAttentionOptions, run


def test_the_longest_sentences_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("a\na b c\na b\n")
    run(MyAttentionOptions(text=tmp_path / "text", longest=2))
    assert capsys.readouterr().out.splitlines() == ["3 sentences, 6 words", "a b c", "a b"]
