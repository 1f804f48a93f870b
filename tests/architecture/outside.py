"""What files outside the core import of softsearch, and whether it is a door: python -m tests.architecture.outside"""

import ast
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from softsearch.doors import MODULES, PACKAGES, ROOMS

IMPORT = re.compile(
    r"^[ >.]*(from softsearch[\w.]* import (?:\([^)]*\)|[^\n#]+)|import softsearch[\w.]*)", re.MULTILINE
)
PLACES = ("src/softsearch/extras", "benchmarks", "docs", "notebooks", "examples", "README.md", "CONTRIBUTING.md")
FOR_READERS = {"softsearch.extras.course", "softsearch.extras.course.small_run", "softsearch.extras.serve.schema"}
MEASURED = {  # what benchmarks measure or switch is private: how a training or a search is done
    "benchmarks/blocks.py": ("softsearch.search.blocks",),
    "benchmarks/corpus_costs.py": (
        "softsearch.data.dataset",
        "softsearch.data.lexicon",
        "softsearch.data.preparation.cleaned_text",
        "softsearch.data.preparation.links",
        "softsearch.data.preparation.selection",
        "softsearch.data.preparation.sentence_hashes",
        "softsearch.data.preparation.text_parts",
        "softsearch.data.sampler",
        "softsearch.data.scripts",
        "softsearch.evaluation.train_test_overlap",
        "softsearch.text.corpus",
        "softsearch.text.filters",
    ),
    "benchmarks/corpus_scale.py": ("softsearch.data.dataset", "softsearch.data.sampler"),
    "benchmarks/gpu/check.py": ("softsearch.training.cuda_graphs",),
    "benchmarks/gpu/speed.py": ("softsearch.training.cuda_graphs",),
    "benchmarks/localisation.py": ("softsearch.extras.localise.similar",),
    "benchmarks/lora_memory.py": ("softsearch.models.layers",),
    "benchmarks/peers/with_softsearch.py": ("softsearch.export.precision",),
}


class Import(NamedTuple):
    """An import of a name, or of a module without one."""

    file: str
    module: str
    name: str


def names_of(stub: Path) -> set[str]:
    """The names that a package exports, from its stub."""
    nodes = ast.parse(stub.read_text(encoding="utf-8")).body
    return {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}


def public_names(root: Path) -> dict[str, set[str]]:
    """The names of each door that is a package."""
    folder = root / "src" / "softsearch"
    found = {f"softsearch.{package}": names_of(folder / package / "__init__.pyi") for package in PACKAGES}
    return found | {"softsearch": names_of(folder / "__init__.pyi") | {"__version__", *PACKAGES}}


def imports(root: Path) -> Iterator[Import]:
    """The imports of softsearch in tracked files, except the records of decisions."""
    listed = subprocess.run(["git", "ls-files", *PLACES], cwd=root, capture_output=True, text=True, check=True)
    for file in listed.stdout.split():
        if file.endswith((".py", ".md", ".ipynb")) and not file.startswith("docs/adr/"):
            for statement in IMPORT.findall(_code(root / file)):
                yield from _names(file, statement)


def _code(path: Path) -> str:
    """The text of a file; of a notebook its cells with code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def _names(file: str, statement: str) -> Iterator[Import]:
    try:
        (node,) = ast.parse(re.sub(r"^[ >.]+", "", statement, flags=re.MULTILINE).strip().rstrip("`;.,")).body
    except SyntaxError:  # a sentence such as "import softsearch stays fast"
        return
    if isinstance(node, ast.ImportFrom):
        yield from (Import(file, str(node.module), alias.name) for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from (Import(file, alias.name, "") for alias in node.names)


def is_allowed(found: Import, public: Mapping[str, set[str]], rooms: Mapping[str, set[str]]) -> bool:
    """Tells whether a file may import a name."""
    file, module, name = found
    modules = {f"softsearch.{each}" for each in MODULES}
    exported = {f"{door}.{each}" for door, names in public.items() for each in names}  # softsearch.testing.contract
    exported -= set(public)
    doors = modules | exported | set(public)
    if f"{module}.{name}" in doors or module in (doors if not name else modules | exported):
        return module not in modules or not name.startswith("_")
    if not file.startswith(("src/", "benchmarks/")):
        return module in FOR_READERS
    if f"{module}.{name}" in {f"softsearch.{room}" for room in ROOMS} or name in rooms.get(module, ()):
        return True
    extra = ".".join(file.removeprefix("src/").split("/")[:3]) if file.startswith("src/") else "softsearch.extras"
    inside = (extra, "softsearch.extras.shared", *MEASURED.get(file, ()))
    return any(f"{module}.{name}.".startswith(f"{each}.") for each in inside)


def room_names(root: Path) -> dict[str, set[str]]:
    """The names of each room, which our own extras and benchmarks may import."""
    folder, found = root / "src" / "softsearch", {}
    for room in ROOMS:
        path = folder / room.replace(".", "/")
        stubs = [stub for stub in (path / "__init__.pyi", path.with_suffix(".pyi")) if stub.is_file()]
        found[f"softsearch.{room}"] = names_of(stubs[0]) if stubs else set(_defined(path.with_suffix(".py")))
    return found


def _defined(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def outside_doors(root: Path) -> list[Import]:
    """Imports that are neither of a door nor of a room that the file may enter."""
    public, rooms = public_names(root), room_names(root)
    return [found for found in imports(root) if not is_allowed(found, public, rooms)]


if __name__ == "__main__":
    for each in outside_doors(Path()):
        print(*each)
