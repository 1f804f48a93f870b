"""One run of two processes, for all tests that compare with it."""

import pytest

from tests.support.faulty_trainings import TwoProcesses, train


@pytest.fixture(scope="session")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> TwoProcesses:
    """A run that was never terminated, in which each process meets faults of its own."""
    folder = tmp_path_factory.mktemp("two")
    faults = {0: {2: "forward-memory", 6: "gradient"}, 1: {3: "nan", 5: "forward-memory"}}
    done = train(folder, "whole", "trainer=ddp", faults=faults)
    assert done.returncode == 0, done.stderr
    return TwoProcesses(folder, faults, done.stdout + done.stderr)
