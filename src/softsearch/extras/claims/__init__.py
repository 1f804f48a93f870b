"""``reproduce`` and ``history``: claims of papers, trained, measured and judged, and all architectures on one page."""

from softsearch.commands import Command

_HERE = "softsearch.extras.claims"
REPRODUCE = Command(
    "reproduce",
    "Trains and measures what papers claim, and says whether it holds",
    f"{_HERE}.command:reproduce",
    "key=value",
    f"{_HERE}.options:Reproduce",
    "lab",
)
HISTORY = Command(
    "history",
    "Trains every architecture that translates text, and writes one page that translates with all of them",
    f"{_HERE}.history:history",
    "key=value",
    f"{_HERE}.options:History",
    "lab",
)
