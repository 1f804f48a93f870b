"""The page of all options of the documentation site: python -m tests.options_page

What ``--help`` prints for each command of the lab, and for each choice of each group of ``train`` and ``evaluate``.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import CONFIGS
from softsearch.app.config.help import Help
from softsearch.app.config.resolvers import register_resolvers
from softsearch.commands import every_command

PAGE = Path("docs/options.md")


def page() -> Iterator[str]:
    """The page's lines."""
    yield "# All options\n\nWhat `python src/COMMAND.py --help` and `--help GROUP=CHOICE` print."
    for command in every_command():
        if command.takes == "key=value":
            yield from (f"\n## {command.name}\n", *_block(command.name))
    for folder in sorted(path for path in CONFIGS.iterdir() if path.is_dir()):
        command = "evaluate" if folder.name == "metric" else "train"
        line = CommandLine(command, [])
        if folder.name in Help(line).choices and folder.name != "launcher":  # which needs Hydra's plugins
            yield f"\n## {folder.name}\n"
            for name in line.choices(folder.name):
                yield from (f"\n### {folder.name}={name}\n", *_block(command, f"{folder.name}={name}"))


def _block(command: str, *words: str) -> Iterator[str]:
    yield f"```text\n{Help(CommandLine(command, ['--help', *words]))}\n```"


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    register_resolvers()
    PAGE.write_text("\n".join(page()) + "\n", encoding="utf-8")
