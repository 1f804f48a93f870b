"""Extras use public names of the core, from the modules that an ADR lists."""

import re
from pathlib import Path

from tests.architecture.simplicity import Tree

ADR = "docs/adr/0030-commands.md"


def test_extras_use_public_names_of_listed_modules(repo_root: Path) -> None:
    text = (repo_root / ADR).read_text(encoding="utf-8")
    section = re.search(r"^## Modules of the core that extras use\n(.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    listed = {f"softsearch.{name}" for name in re.findall(r"`([\w.]+)`", section[1])}
    used = Tree(repo_root).names_used_by_extras()
    assert not [name for name in used if name[1].startswith("_")]
    assert not {module for module, _ in used} - listed, f"use a function of a listed module, or say why in {ADR}"
