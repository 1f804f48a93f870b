"""Observer: what the HTTP layer overrides to count what happens in the dispatcher."""

from collections.abc import Sequence


class Observer:
    """Is told what happens, for metrics; its methods do nothing, a subclass overrides those that it needs."""

    def on_batch(self, model: str, waited: Sequence[float], tokens: int, seconds: float) -> None:
        """A batch has been answered: how long its lines waited, its tokens with padding, and its own time."""

    def on_lines(self, model: str, outcome: str, count: int) -> None:
        """Lines have ended: ``done``, ``failed``, ``dropped`` before they began (deadline, client left) or ``lost``."""

    def on_death(self) -> None:
        """A worker process has died; it is replaced."""
