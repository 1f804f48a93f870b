"""``reproduce`` tests claims of papers by training and measuring; ``history`` puts all architectures on one page."""

from softsearch.commands import Command

_HERE = "softsearch.extras.claims"
REPRODUCE = Command(
    "reproduce",
    "Test claims of papers by training and measuring models",
    f"{_HERE}.command:reproduce",
    "key=value",
    f"{_HERE}.options:Reproduce",
    "lab",
)
HISTORY = Command(
    "history",
    "Train all translation architectures, and write one page that translates with all of them",
    f"{_HERE}.history:history",
    "key=value",
    f"{_HERE}.options:History",
    "lab",
    ("out/",),
)
