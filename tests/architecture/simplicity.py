"""How much must be read, and its limits, checked by ``make lint``: python -m tests.architecture.simplicity"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from softsearch.doors import PACKAGES
from tests.architecture.outside import outside_doors, public_names, room_names

NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
ADR = Path("docs/adr/0034-what-is-measured.md")  # the one place of the limits
LAYOUT = Path("docs/layout.md")  # has the files to read first
TRAIN = ("softsearch.__main__", "softsearch.app.start", "softsearch.app.config.command", "softsearch.app.train.train")
MANY = 12  # imports of a file


class Graph(NamedTuple):
    """The modules of ``src/softsearch`` with what they import of one another."""

    texts: Mapping[str, str]  # module -> its file
    eager: Mapping[str, set[str]]  # at its import
    every: Mapping[str, set[str]]  # also inside functions

    @classmethod
    def read(cls, src: Path) -> "Graph":
        """Reads all modules below ``src``."""
        texts = {module_of(path.relative_to(src)): path.read_text(encoding="utf-8") for path in src.rglob("*.py")}
        trees = {module: ast.parse(text) for module, text in texts.items()}
        eager = {module: set(_imports(tree, texts, lazy=False)) for module, tree in trees.items()}
        return cls(texts, eager, {module: set(_imports(tree, texts, lazy=True)) for module, tree in trees.items()})

    def loaded_by(self, *modules: str) -> set[str]:
        """The modules with code that an import of these loads, packages included."""
        found: set[str] = set()
        left = [*modules]
        while left:
            module = left.pop()
            if module not in found:
                found.add(module)
                left += self.eager[module]
                left += [package] if (package := module.rpartition(".")[0]) else []
        return {module for module in found if code_lines(self.texts[module])}

    def circles(self) -> list[set[str]]:
        """Groups of modules that import one another, directly or not; the root imports its API when it is asked for."""
        modules = {module for module in self.texts if "." in module}
        reach = {module: self._reached(module, modules) for module in modules}
        groups = {frozenset(other for other in reach[module] if module in reach[other]) for module in modules}
        return [set(group) for group in groups if group]

    def _reached(self, module: str, modules: Collection[str]) -> set[str]:
        found: set[str] = set()
        left = [*self.every[module]]
        while left:
            if (other := left.pop()) in modules and other not in found:
                found.add(other)
                left += self.every[other]
        return found


class Tree:
    """A checkout, and what is measured of it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def graph(self) -> Graph:
        """The modules of src."""
        return Graph.read(self.root / "src")

    def measures(self) -> Iterator[tuple[str, float]]:
        """Each measure by its name in the ADR."""
        graph = self.graph
        first = must_read((self.root / LAYOUT).read_text(encoding="utf-8"))
        yield "must-read list: files", len(first)
        yield "must-read list: code", self._code(first)
        for name, modules in (("train", TRAIN), ("Translator", ("softsearch.runtime.translator",))):
            loaded = graph.loaded_by(*modules)
            yield f"eager imports of {name}: files", len(loaded)
            yield f"eager imports of {name}: code", self._code(loaded)
        counts = [len(imports) for module, imports in graph.every.items() if "." in module]
        yield "own imports of a file: mean", round(sum(counts) / len(counts), 2)
        yield f"files with more than {MANY} own imports", sum(count > MANY for count in counts)
        yield "circles of files", len(graph.circles())
        public = public_names(self.root)
        yield "names outside doors and rooms", len(outside_doors(self.root))
        yield "public names", len(set().union(*public.values()) - {*PACKAGES})
        yield "names in rooms", sum(map(len, room_names(self.root).values()))

    def _code(self, modules: Iterable[str]) -> int:
        return sum(code_lines(self.graph.texts[module]) for module in modules)


def module_of(path: Path) -> str:
    """The name of the module of a file below ``src``."""
    names = path.with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


@cache
def code_lines(text: str) -> int:
    """Lines with code: neither blank, nor a comment, nor part of a docstring."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    code = {line for token in tokens if token.type not in NOT_CODE for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            code -= set(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(code)


def must_read(layout: str) -> list[str]:
    """The modules in the table of what to read first, in its order."""
    return [module_of(Path("softsearch", file)) for file in re.findall(r"^\| `([\w/]+\.py)` \|", layout, re.MULTILINE)]


def limits(adr: str) -> dict[str, float]:
    """The limit of each measure, from rows such as "| circles of files | 0 |"."""
    found = re.findall(r"^\| ([^|]+?) \| ([\d,.]+) \|", adr, re.MULTILINE)
    return {name: float(number.replace(",", "")) for name, number in found}


def _imports(tree: ast.AST, modules: Mapping[str, str], *, lazy: bool) -> Iterator[str]:
    """The modules among ``modules`` that a file imports; without ``lazy`` not inside functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield from [name for name in (f"{node.module}.{alias.name}", node.module) if name in modules][:1]
        is_run_at_import = not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if lazy or (is_run_at_import and not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))):
            yield from _imports(node, modules, lazy=lazy)


def above(root: Path) -> list[str]:
    """Prints each measure with its limit; returns those that are above it, or have none."""
    allowed, wrong = limits((root / ADR).read_text(encoding="utf-8")), []
    for name, value in Tree(root).measures():
        limit = allowed.get(name)
        print(f"{name:40}{value:>10,}  at most {limit:,}" if limit is not None else f"{name:40}{value:>10,}  no limit")
        if limit is None or value > limit:
            wrong.append(name)
    return wrong


if __name__ == "__main__":
    if wrong := above(Path()):
        sys.exit(f"{'; '.join(wrong)}: above the limit. Make it simpler, or change {ADR}, which says why")
