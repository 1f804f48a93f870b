"""What tests cost: a mark for each kind, and the CPU seconds of each kind at the end of a run, children included."""

import os
from collections import defaultdict
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

KINDS = {  # mark -> names that a test's module imports, or that the test asks for as fixtures; the first that fits
    "browser": {"browser"},
    "process": {"SERVER", "carry_out", "popen", "served", "serving", "subprocess", "train_with_faults"},
    "trace": {"export", "export_bundle", "export_graphs", "export_in", "export_run"},
}  # fmt: skip
FORKED = SimpleNamespace(seconds=0.0)  # of commands that tests/support/fork_server.py has run for this process


def kind_of(item: pytest.Function) -> str | None:
    """The mark of a test."""
    names = {*vars(item.module), *item.fixturenames}
    if getattr(vars(item.module).get("run"), "__module__", "") == "tests.support.commands":
        return "process"
    return next((kind for kind, signs in KINDS.items() if signs & names), None)


class Costs:
    """A plugin that marks tests, measures them, and prints the sums of all workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.seconds = config, defaultdict[str, float](float)

    def pytest_itemcollected(self, item: pytest.Function) -> None:
        """Marks a test."""
        if kind := kind_of(item):
            item.add_marker(kind)

    @pytest.hookimpl(trylast=True)  # after fixtures and random numbers have ordered them
    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        """Begins with what takes the longest, so that no worker ends with it alone."""
        order = [*KINDS, None]
        items.sort(key=lambda item: order.index(kind_of(item)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Function) -> Iterator[Any]:
        """Measures a test with its fixtures."""
        before = _seconds()
        result = yield
        self.seconds[kind_of(item) or "others"] += _seconds() - before
        return result

    def pytest_sessionfinish(self) -> None:
        """Sends the sums of a worker to the process that prints."""
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["cpu_seconds"] = dict(self.seconds)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Adds the sums of a worker."""
        for kind, seconds in getattr(node, "workeroutput", {}).get("cpu_seconds", {}).items():
            self.seconds[kind] += seconds

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Prints the sums."""
        if not self.seconds:
            return
        kinds = ", ".join(f"{kind} {self.seconds[kind]:,.0f}" for kind in (*KINDS, "others"))
        terminalreporter.write_line(f"CPU seconds: {kinds}; together {sum(self.seconds.values()):,.0f}")


def _seconds() -> float:
    """CPU seconds of this process, its children that have ended, and the commands that were forked for it."""
    return sum(os.times()[:4]) + FORKED.seconds
