"""The command ``softsearch my_attention``: how long a text is, and its longest sentences."""

from dataclasses import dataclass
from pathlib import Path

from softsearch.commands import Command
from softsearch.ranges import AtLeastOne
from softsearch.text import read_lines

COMMAND = Command(
    "my_attention",
    "Prints how long a text is, and its longest sentences",
    run="my_attention.command:run",
    takes="key=value",
    options="my_attention.command:MyAttentionOptions",
    needs="lab",
)


@dataclass(frozen=True, kw_only=True)
class MyAttentionOptions:
    """The options, as ``configs/my_attention.yaml`` has them; types and ranges are checked before ``run``."""

    text: Path
    longest: AtLeastOne


def run(options: MyAttentionOptions) -> None:
    """Reads the text and prints."""
    lines = list(read_lines(options.text))
    print(f"{len(lines)} sentences, {sum(len(line.split()) for line in lines)} words")
    for line in sorted(lines, key=lambda line: -len(line.split()))[: options.longest]:
        print(line)
