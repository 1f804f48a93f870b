"""The house rules hold, and each of them notices when it is broken."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture import rules
from tests.architecture.simplicity import Graph, code_lines
from tests.reliability_page import page

Rule = Callable[[str], list[str]]

LONG_FUNCTION = "def f():\n" + "    x = 1\n" * rules.MAX_FUNCTION_LINES
DECORATED = "import a\n\n@a.b\n@a.c\ndef f():\n" + "    x = 1\n" * (rules.MAX_FUNCTION_LINES - 2)


@pytest.fixture(scope="module")
def sources(repo_root: Path) -> list[Path]:
    found = sorted((repo_root / "src").rglob("*.py"))
    assert len(found) > 20, f"the rules would be checked on {len(found)} files only"
    return found


@pytest.mark.parametrize("rule", [rules.file_length, rules.function_length, rules.unsafe_loading, rules.printed_markup])
def test_source_keeps_the_rule(rule: Rule, sources: list[Path]) -> None:
    assert not rules.broken(rule, sources)


def test_public_methods_have_or_inherit_a_docstring(sources: list[Path]) -> None:
    ours = [path.read_text(encoding="utf-8") for path in sources if "testing" not in path.parts]
    assert rules.missing_docstrings(ours) == []


def test_method_without_a_docstring_is_noticed() -> None:
    base = "class A:\n    def f(self):\n        'Says what.'\n    def _g(self): ..."
    derived = "class B(module.A[int]):\n    def f(self): ...\n    def g(self): ..."
    assert [line.partition(" ")[0] for line in rules.missing_docstrings([base, derived])] == ["B.g"]


@pytest.mark.parametrize("layer", sorted(rules.ALLOWED_IMPORTS))
def test_layer_imports_only_what_it_may(layer: str, repo_root: Path) -> None:
    package = repo_root / "src" / "softsearch"
    rooms = [
        package / other for other in rules.ALLOWED_IMPORTS if other.startswith(f"{layer}/")
    ]  # with rules of their own
    files = [file for file in sorted((package / layer).rglob("*.py")) if not {*rooms} & {*file.parents}]
    assert files, f"the layer {layer} has no files"
    assert not rules.broken(rules.foreign_imports(layer), files)


def test_package_init_imports_nothing_eagerly() -> None:
    script = "import sys, softsearch; print([n for n in sys.modules if n.startswith('softsearch.') or n == 'numpy'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_every_package_folder_has_an_init(repo_root: Path) -> None:
    # The layering checker does not see into a folder without one.
    package = repo_root / "src" / "softsearch"
    folders = {path.parent for path in package.rglob("*.py")}
    assert not [folder for folder in sorted(folders) if not (folder / "__init__.py").is_file()]


def test_decision_records_are_short_and_numbered_without_gaps(repo_root: Path) -> None:
    records = sorted((repo_root / "docs" / "adr").glob("[0-9]*.md"))
    assert records
    assert not rules.broken(rules.decision_record, records)
    assert [path.name[:4] for path in records] == [f"{number:04d}" for number in range(1, len(records) + 1)]


def test_the_page_of_faults_has_every_docstring_of_a_fault(repo_root: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (repo_root / "tests").rglob("test_*.py")]
    rows = re.findall(r"^\| .+ \| .+ \| `\S+\.py` \|$", "\n".join(page()), re.MULTILINE)
    assert len(rows) == sum(len(re.findall('^ +"""Fault: ', text, re.MULTILINE)) for text in texts) > 100


def test_changelog_has_its_form(repo_root: Path) -> None:
    assert not rules.broken(rules.changelog, [repo_root / "CHANGELOG.md"])


@pytest.mark.parametrize(
    ("rule", "bad", "complaint"),
    [
        (rules.file_length, "\n" * (rules.MAX_FILE_LINES + 1), "split the file"),
        (rules.function_length, LONG_FUNCTION, "f has 61 lines"),
        (rules.function_length, DECORATED, "line 3: f has 61 lines"),
        (rules.function_length, "class A:\n    " + LONG_FUNCTION.replace("\n", "\n    "), "f has 61 lines"),
        (rules.unsafe_loading, "import torch\ntorch.load(f)", "weights_only=True"),
        (rules.unsafe_loading, "import torch\ntorch.load(f, weights_only=False)", "weights_only=True"),
        (rules.unsafe_loading, "import torch as t\nt.load(f, weights_only=flag)", "weights_only=True"),
        (rules.unsafe_loading, "import numpy as np\nnp.load(f, allow_pickle=True)", "allow_pickle=False"),
        (
            rules.printed_markup,
            "from rich.console import Console\nConsole(stderr=True)",
            "line 2: rich.console.Console",
        ),
        (rules.printed_markup, "import rich\nrich.print('[red]')", "line 2: rich.print"),
        (rules.foreign_imports("search"), "import torch", "search imports torch"),
        (rules.foreign_imports("search"), "def f():\n    import sentencepiece", "search imports sentencepiece"),
        (rules.foreign_imports("models"), "from lightning.pytorch import Trainer", "models imports lightning"),
        (rules.foreign_imports("text"), "from . import vocabulary", "text imports"),
        (rules.decision_record, "\n" * 41, "41 lines"),
        (rules.decision_record, "## Context\n## Decision\n", "Consequences"),
        (rules.changelog, "# Changelog\n### Added\n", "Unreleased"),
        (rules.changelog, "## [Unreleased]\n### News\n", "'News' is none of"),
    ],
)
def test_rule_notices(rule: Rule, bad: str, complaint: str) -> None:
    assert complaint in "\n".join(rule(bad))


def test_file_that_does_not_parse_is_named(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("x = 1\ndef :\n", encoding="utf-8")
    assert f"{bad}: line 2" in rules.broken(rules.unsafe_loading, [bad])[0]


@pytest.mark.parametrize(
    ("rule", "good"),
    [
        (rules.unsafe_loading, "import torch\ntorch.load(f, map_location='cpu', weights_only=True)"),
        (rules.unsafe_loading, "import numpy as np\nnp.load(f, mmap_mode='r')\nnp.load(f, allow_pickle=False)"),
        (rules.unsafe_loading, "import re, torch\nre.compile('x')\ntorch.compile(net)\nnet.eval()\nyaml.safe_load(f)"),
        (rules.foreign_imports("runtime"), "import json, numpy\nfrom softsearch.search import beam"),
    ],
)
def test_rule_lets_good_code_pass(rule: Rule, good: str) -> None:
    assert rule(good) == []


def test_lines_of_code_are_counted_without_blanks_comments_and_docstrings() -> None:
    docstrings, comments = '"""Title.\n\nMore.\n"""\n', "x = 1  # why\n\n# a comment\n"
    text = docstrings + comments + 'y = """\nvalue\n"""\n\n\ndef f():\n    """What."""\n    return x\n'
    assert code_lines(text) == 6


def test_imports_and_circles_are_found(tmp_path: Path) -> None:
    package = tmp_path / "src" / "softsearch"
    (package / "extras" / "serve").mkdir(parents=True)
    files = {
        "__init__": "",
        "a": "from softsearch import b\n\ndef f():\n    from softsearch.c import X\n",
        "b": "import softsearch.a\n",
        "c": "X = 1\n",
        "extras/serve/__init__": "from softsearch.c import X\nfrom softsearch.extras.serve import own\n",
        "extras/serve/own": "Y = 1\n",
    }
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    graph = Graph.read(tmp_path / "src")
    assert graph.eager["softsearch.a"] == {"softsearch.b"}
    assert graph.every["softsearch.a"] == {"softsearch.b", "softsearch.c"}
    assert graph.loaded_by("softsearch.b") == {"softsearch.a", "softsearch.b"}
    assert graph.circles() == [{"softsearch.a", "softsearch.b"}]
