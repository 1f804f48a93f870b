"""The page of faults of the documentation site, from the docstrings of the tests: python -m tests.reliability_page

The test of a fault begins its docstring with ``Fault: what happens to softsearch. Effect: what softsearch does.``
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = Path("docs/reliability.md")
FAULT = re.compile(r"Fault: (.+?)\.\s+Effect: (.+?)\.(?:\n\n|\Z)", re.DOTALL)
SECTIONS = {  # a test belongs to the first section that has a beginning of its path
    "Training": (
        *(f"faults/test_{name}" for name in ("changed", "numerics", "preemption")),
        *("integration/test_methods", "integration/test_resume", "unit/training/callbacks"),
        *("unit/data/test_", "unit/app/train", "unit/app/test_export"),
    ),
    "Checkpoints": ("faults/test_checkpoints", "unit/training/checkpoints"),
    "Text": (
        "unit/text/test_corpus",
        "unit/text/test_lines",
        "unit/data/preparation",
        "unit/evaluation",
        "unit/app/config/test_build",
    ),
    "Options": ("unit/app/config", "unit/app/test_mistakes", "unit/app/test_console"),
    "Bundles": ("unit/export", *(f"unit/runtime/test_{name}" for name in ("bundle", "session", "graph", "display"))),
    "Translating": ("unit/runtime", "unit/search", "integration/test_commands"),
    "Files from others": ("unit/app/test_", "unit/text/test_plain", "extras/importing", "fuzz"),
    "Server": ("faults/test_server", "extras/serve"),
}
INTRODUCTION = """# Reliability

What can go wrong, what softsearch then does, and the test that shows it. `make docs` builds this page from the tests'
docstrings. `make test` runs those that show a fault first, `make test-all` all. Paths are below `tests/`.
[Interruptions](interruptions.md) explains how training survives faults and signals."""


def faults() -> Iterator[tuple[str, str, str]]:
    """Yields fault, effect and file of each test that has them."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
                found := FAULT.match(ast.get_docstring(node) or "")
            ):
                fault, effect = (" ".join(text.split()).replace("|", "\\|") for text in found.groups())
                yield fault[0].upper() + fault[1:], effect, path.relative_to(TESTS).as_posix()


def page() -> Iterator[str]:
    """Yields the page's lines."""
    rows = list(faults())
    sections = [next(name for name, paths in SECTIONS.items() if file.startswith(paths)) for _, _, file in rows]
    yield INTRODUCTION
    for section in SECTIONS:
        yield f"\n## {section}\n\n| fault | effect | test |\n|---|---|---|"
        for row, name in zip(rows, sections, strict=True):
            if name == section:
                yield "| {} | {} | `{}` |".format(*row)


if __name__ == "__main__":
    PAGE.write_text("\n".join(page()) + "\n", encoding="utf-8")
