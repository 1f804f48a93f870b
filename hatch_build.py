"""Builds the page of src/web with npm before a wheel, an sdist or an editable install is made; hatchling runs this.

Without Node.js or npm's registry there is only a warning: everything but ``softsearch web`` works without the page.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSTALL = (
    *("npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"),
    *("--fetch-retries=0", "--fetch-timeout=30000"),  # ms; an installation does not wait long for a page
)
BUILD = ("npm", "run", "build")
_TIMEOUT = 300.0  # s


class PageBuildHook(BuildHookInterface[Any]):
    """The hook ``custom`` of pyproject.toml."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the page if it is missing or older than its sources."""
        del version, build_data
        root = Path(self.root)
        if is_stale(root) and (problem := build_page(root / "src" / "web")):
            self.app.display_warning(f"the page of `softsearch web` is not built: {problem}; run `make web` later")


def is_stale(root: Path) -> bool:
    """Whether the page's sources are newer than the built page, or nothing is built; an sdist has both, equally old."""
    built = root / "src" / "softsearch" / "extras" / "serve" / "web" / "assets" / "index.html"
    web = root / "src" / "web"
    sources = [path for path in web.rglob("*") if "node_modules" not in path.relative_to(web).parts]
    package = root / "src" / "softsearch"
    sources += [*(package / "report" / "page").glob("beam-tree.*"), *(package / "runtime").glob("heatmap.css")]
    return not built.is_file() or max(path.stat().st_mtime for path in sources) > built.stat().st_mtime


def build_page(web: Path) -> str:
    """Installs the packages of the lock file and builds; returns what went wrong, "" if nothing did."""
    npm = shutil.which("npm")  # npm.cmd on Windows
    if npm is None:
        return "there is no npm on the PATH (install Node.js 20 or newer)"
    for command in (INSTALL, BUILD):
        try:
            done = subprocess.run(
                [npm, *command[1:]], cwd=web, capture_output=True, text=True, timeout=_TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired:
            return f"{' '.join(command)} did not end in {_TIMEOUT:.0f} s"
        if done.returncode:
            return f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()[-500:]}"
    return ""
