"""``softsearch plugins``: what installed packages add to softsearch."""

from importlib.metadata import EntryPoint

from softsearch import commands
from softsearch.app.config.allowed_classes import ENTRY_POINTS, installed_classes
from softsearch.app.console import echo, print_rows


def plugins() -> None:
    """Prints the commands of installed packages, and their classes that a checkpoint may name."""
    added = {name: point for name, point in commands.installed().items() if not point.value.startswith("softsearch.")}
    classes = installed_classes()
    if added:
        print_rows(("command", "installed by"), map(_row, added, added.values()))
    if classes:
        print_rows(("class or package that checkpoints may name", "installed by"), map(_row, classes, classes.values()))
    if not added and not classes:
        echo(f"no installed package lists commands under {commands.ENTRY_POINTS} or classes under {ENTRY_POINTS}")


def _row(name: str, point: EntryPoint) -> tuple[str, str]:
    return name, f"{point.dist.name} {point.dist.version}" if point.dist else ""
