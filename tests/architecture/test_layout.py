"""The list of what to read first names files that exist, few enough to be read."""

from pathlib import Path

from tests.architecture.simplicity import LAYOUT, Tree, code_lines, must_read


def test_what_to_read_first_is_there_and_is_little() -> None:
    tree = Tree(Path())
    modules = must_read(LAYOUT.read_text(encoding="utf-8"))
    assert 20 < len(modules) <= 30
    assert len({*modules}) == len(modules)
    texts = tree.graph.texts
    assert [module for module in modules if module not in texts] == []
    assert sum(code_lines(texts[module]) for module in modules) <= 5000


def test_a_row_of_another_table_is_not_a_file_to_read() -> None:
    page = "| `a/b.py` | teaches |\n| a model | `c.py` |\n`d.py`\n| `__main__.py` | x |\n"
    assert must_read(page) == ["softsearch.a.b", "softsearch.__main__"]
