"""``softsearch plugins``: what installed packages add to softsearch."""

from softsearch.app.config.allowed_classes import ENTRY_POINTS, installed_classes
from softsearch.app.console import echo, print_rows


def plugins() -> None:
    """Prints the classes of installed packages that a checkpoint may name."""
    rows = [
        (name, f"{point.dist.name} {point.dist.version}" if point.dist else "")
        for name, point in installed_classes().items()
    ]
    if rows:
        print_rows(("class or package that checkpoints may name", "installed by"), rows)
    else:
        echo(f"no installed package lists classes under the entry-point group {ENTRY_POINTS}")
