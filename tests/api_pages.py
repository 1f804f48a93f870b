"""The pages of public names of the documentation site, one for each package: python -m tests.api_pages"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

from softsearch.doors import PACKAGES

FOLDER = Path("docs/api")


def homes(package: str, root: Path = Path("src")) -> dict[str, str]:
    """The public names of a package, with the modules that define them, in the order of its stub."""
    stub = ast.parse((root / "softsearch" / package / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    found = {alias.name: node.module or "" for node in imports for alias in node.names}
    return {name: ".".join(filter(None, ("softsearch", package, module))) for name, module in found.items()}


def page(package: str) -> Iterator[str]:
    """The page's lines."""
    yield f"# softsearch.{package}\n"
    yield f"{(importlib.import_module(f'softsearch.{package}').__doc__ or '').splitlines()[0]}\n"
    for name, module in sorted(homes(package).items(), key=lambda item: item[0].casefold()):
        options = f"{{ heading: softsearch.{package}.{name}, toc_label: {name}, heading_level: 2 }}"
        yield f"::: {module}.{name}\n    options: {options}\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in PACKAGES:
        (FOLDER / f"{each}.md").write_text("\n".join(page(each)), encoding="utf-8")
