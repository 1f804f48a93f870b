"""The house rules as functions from a file's text to a list of complaints, so that each can be shown to fail."""

import ast
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

MAX_FILE_LINES = 350
MAX_FUNCTION_LINES = 60
MAX_ADR_LINES = 40

# What each torch-free or torch-only layer may import besides the standard library and softsearch itself.
ALLOWED_IMPORTS = {
    "text": {"lazy_loader", "numpy", "pyarrow", "regex", "sentencepiece"},  # pyarrow is optional: .zst and Parquet
    "search": {"lazy_loader", "numpy"},
    "runtime": {"lazy_loader", "numpy", "onnxruntime", "pyarrow", "sentencex"},
    "extras/serve": {
        "babel",
        "fastapi",
        "h11",
        "numpy",
        "prometheus_client",
        "pydantic",
        "regex",
        "starlette",
        "uvicorn",
    },
    "models": {"lazy_loader", "torch"},
}
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def file_length(text: str) -> list[str]:
    """Complain about a file that has outgrown its budget."""
    lines = text.count("\n")
    return [f"{lines} lines, at most {MAX_FILE_LINES}: split the file"] if lines > MAX_FILE_LINES else []


def function_length(text: str) -> list[str]:
    """Complain about functions that have outgrown their budget, decorators and docstring counted."""
    complaints = []
    for node in _functions(_tree(text)):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        lines = (node.end_lineno or first) - first + 1
        if lines > MAX_FUNCTION_LINES:
            complaints.append(f"line {first}: {node.name} has {lines} lines, at most {MAX_FUNCTION_LINES}")
    return complaints


def unsafe_loading(text: str) -> list[str]:
    """Complain about loading that may unpickle foreign data; ruff refuses pickle itself and what runs code."""
    tree = _tree(text)
    names = _import_names(tree)
    complaints = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = _dotted(call.func, names)
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        if name == "torch.load" and given.get("weights_only") != "True":
            complaints.append(f"line {call.lineno}: calls torch.load: pass weights_only=True")
        elif given.get("allow_pickle", "False") != "False":
            complaints.append(f"line {call.lineno}: calls {name}: pass allow_pickle=False")
    return complaints


def printed_markup(text: str) -> list[str]:
    """Complain about consoles that take names of files for markup."""
    tree = _tree(text)
    names = _import_names(tree)
    complaints = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        name = _dotted(call.func, names)
        if name == "rich.print" or (name == "rich.console.Console" and given.get("markup") != "False"):
            complaints.append(f"line {call.lineno}: {name} reads markup, use softsearch.app.console")
    return complaints


def missing_docstrings(texts: Iterable[str]) -> list[str]:
    """Complain about public methods without a docstring that override none of our methods that has one."""
    classes = [node for text in texts for node in ast.walk(_tree(text)) if isinstance(node, ast.ClassDef)]
    bases: dict[str, set[str]] = defaultdict(set)
    documented: dict[str, set[str]] = defaultdict(set)
    for node in classes:
        bases[node.name] |= {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
        documented[node.name] |= {method.name for method in _methods(node) if ast.get_docstring(method)}

    def inherits(name: str, method: str) -> bool:
        return method in documented[name] or any(inherits(base, method) for base in bases[name] - {name})

    return [
        f"{node.name}.{method.name} has no docstring, and overrides no method that has one"
        for node in classes
        if not node.name.startswith("_")
        for method in _methods(node)
        if not method.name.startswith("_") and not inherits(node.name, method.name)
    ]


def foreign_imports(layer: str) -> Callable[[str], list[str]]:
    """Make the rule that a layer imports nothing but what ALLOWED_IMPORTS grants it."""
    allowed = ALLOWED_IMPORTS[layer] | {"softsearch"} | sys.stdlib_module_names

    def rule(text: str) -> list[str]:
        found = _imports(_tree(text))
        return [f"line {line}: {layer} imports {name}" for line, name in found if name not in allowed]

    return rule


def decision_record(text: str) -> list[str]:
    """Complain about a decision record that is too long or lacks one of its parts."""
    lines = text.splitlines()
    complaints = [f"{len(lines)} lines, at most {MAX_ADR_LINES}"] if len(lines) > MAX_ADR_LINES else []
    wanted = ("## Context", "## Decision", "## Consequences")
    return complaints + [f"no section {section!r}" for section in wanted if section not in lines]


def changelog(text: str) -> list[str]:
    """Complain about a changelog that is not in the form of Keep a Changelog."""
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    lines = text.splitlines()
    sections = [line.removeprefix("### ") for line in lines if line.startswith("### ")]
    complaints = [] if "## [Unreleased]" in lines else ["no section '## [Unreleased]'"]
    return complaints + [f"{section!r} is none of {sorted(kinds)}" for section in sections if section not in kinds]


def broken(rule: Callable[[str], list[str]], paths: list[Path]) -> list[str]:
    """Apply a rule to files and name the file in each complaint."""
    complaints = []
    for path in paths:
        try:
            complaints += [f"{path}: {complaint}" for complaint in rule(path.read_text(encoding="utf-8"))]
        except SyntaxError as error:
            complaints.append(f"{path}: line {error.lineno}: this Python cannot parse it: {error.msg}")
    return complaints


@cache
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


def _functions(tree: ast.AST) -> Iterator[FunctionNode]:
    return (node for node in ast.walk(tree) if isinstance(node, FunctionNode))


def _methods(node: ast.ClassDef) -> Iterator[FunctionNode]:
    return (method for method in node.body if isinstance(method, FunctionNode))


def _imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, (node.module or "." * node.level).partition(".")[0]


def _import_names(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for: {"np": "numpy", "load": "torch.load"}."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({alias.asname: alias.name for alias in node.names if alias.asname})
        elif isinstance(node, ast.ImportFrom):
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, names)}.{node.attr}"
    return ""
