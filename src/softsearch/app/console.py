"""How commands print."""

from rich.console import Console


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """Prints text as it is, in tables too: a folder named ``[red]`` or ``:ok:`` is neither markup nor an emoji.

    Args:
        stderr: whether to print to standard error.
        width: in characters; the terminal's where there is none.
    """
    return Console(stderr=stderr, width=width, markup=False, emoji=False)
