"""``localise`` and ``data=catalogs``: models of the messages of a program, which fill in what its catalogs lack."""

from typing import TYPE_CHECKING, Any

from softsearch.commands import Command

if TYPE_CHECKING:
    from softsearch.extras.localise.source import Catalogs as Catalogs

__all__ = ["LOCALISE", "Catalogs"]

_HERE = "softsearch.extras.localise"
LOCALISE = Command(
    "localise",
    "Translates what a message catalog lacks, and marks it for review",
    f"{_HERE}.command:localise",
    options=f"{_HERE}.command:add_options",
    needs="cpu,localise",
    writes=("out",),
)


def __getattr__(name: str) -> Any:  # PEP 562: the command is listed without the lab's imports
    if name == "Catalogs":
        from softsearch.extras.localise.source import Catalogs

        return Catalogs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
