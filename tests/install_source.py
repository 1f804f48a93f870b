"""Where the built site says to install softsearch from: python -m tests.install_source SOURCE, after the build

The pages install from a clone: ``pip install ".[cpu]"``. SOURCE replaces the dot: a path, the address of a repository
(``git+https://...``), or ``softsearch`` once it is on a package index. ``make docs`` takes it from SOFTSEARCH_SOURCE.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def installing_from(source: str, text: str) -> str:
    """Returns HTML or JSON of the site with its installations from another source."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = "|".join(project["optional-dependencies"])  # other packages have other ones
    name = r"softsearch[\1] @ " + source if "://" in source else rf"{source}[\1]"
    return re.sub(rf"""(?<=["'])\.\[((?:(?:{extras}),?)+)\](?=\\?["'])""", name, text)


if __name__ == "__main__" and sys.argv[1] != ".":
    for path in (*Path("site").rglob("*.html"), Path("site/search.json")):
        path.write_text(installing_from(sys.argv[1], path.read_text(encoding="utf-8")), encoding="utf-8")
