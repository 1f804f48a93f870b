"""What pages tell of trainings, and of when comparisons were written."""

from pathlib import Path

import pytest

from softsearch.app import describe_machine
from softsearch.app.results import read_metrics
from softsearch.extras.claims import claim_page
from softsearch.extras.claims.register import note_start, noted_starts
from softsearch.extras.claims.trainings import own_seconds
from softsearch.text.parts import read_json


@pytest.mark.parametrize(
    ("elapsed", "expected"),
    [
        ([10, 20, 30, 40], 40),
        ([10, 20, 3030, 3040], 40),  # stopped for fifty minutes
        ([10, 20, 35, 45], 40),  # a validation
        ([], 55),  # an older run
    ],
)
def test_the_time_of_a_training_that_waited_is_that_of_its_steps(
    elapsed: list[float], expected: float, tmp_path: Path
) -> None:
    rows = "".join(f"{20 * step},{seconds}\n" for step, seconds in enumerate(elapsed, 1))
    (tmp_path / "metrics.csv").write_text(f"step,train/elapsed_seconds\n{rows}")
    (tmp_path / "metrics.json").write_text('{"train/steps": 80, "train/seconds": 55}')
    assert own_seconds(tmp_path, read_metrics(tmp_path)) == pytest.approx(expected)


def test_a_page_tells_where_and_when_each_group_of_trainings_ran() -> None:
    older = [{"folder": name, "minutes": 2.0, "overrides": ["model=rnn", "trainer=gpu"]} for name in "ab"]
    newer = {"folder": "c", "minutes": 5.0, "overrides": ["model=rnn"], "machine": "here"}
    noted = newer | {"date": "2026-11-30", "commits": ["0123456789"]}
    assert claim_page._trained({"machine": "there", "trainings": [*older, noted]}) == (
        "2 trainings, 4 minutes in total on there, with `trainer=gpu` (dates and commits were not noted); "
        "1 training, 5 minutes on here (2026-11-30, commit 01234567)"
    )


def test_a_page_without_trainings_tells_when_it_was_measured() -> None:
    results = read_json(Path("docs/reproduce/parallel_training/results.json")) | {"machine": "EPYC, 2 cores"}
    results["measured"] = {"date": "2026-12-01", "commits": ["0123456789"]}
    told = "Measured without training on EPYC, 2 cores"
    assert f"{told} (2026-12-01, commit 01234567), with" in claim_page.claim_page(results)
    del results["measured"]
    assert f"{told} (dates and commits were not noted), with" in claim_page.claim_page(results)


def test_the_machine_of_a_training_is_that_of_its_last_start_wherever_it_is_measured(tmp_path: Path) -> None:
    assert noted_starts(tmp_path) == {"machine": describe_machine(), "date": None, "commits": []}
    (tmp_path / "starts.txt").write_text("2026-11-29 0123456 Xeon, 2 cores\n2026-11-30 abcdef0+changes EPYC, 2 cores\n")
    assert noted_starts(tmp_path) == {
        "machine": "EPYC, 2 cores",
        "date": "2026-11-30",
        "commits": ["0123456", "abcdef0+changes"],
    }
    note_start(tmp_path)
    assert noted_starts(tmp_path)["machine"] == describe_machine()


def test_a_page_tells_which_comparisons_were_changed_and_which_dropped() -> None:
    entries = {
        "1": ("2026-11-25", "0123456789+changes", None, "Longer is longer."),
        "2": ("2026-11-30", None, "all", "Longer is longer."),
        "3": ("2026-11-26", "abcdef0123", "all", "Shorter is shorter."),
    }
    register = {key: dict(zip(("date", "commit", "known", "says"), each, strict=True)) for key, each in entries.items()}
    current = [{"hash": "2", "says": "Longer is longer."}]
    assert claim_page._written({"comparisons": current, "register": register}) == (
        [("Longer is longer.", "2026-11-30", "all")],
        [
            "Changed since, in what is compared or in the margin: Longer is longer.",
            "Dropped since: Shorter is shorter.",
        ],
    )
    current[0]["hash"] = "1"
    assert claim_page._written({"comparisons": current, "register": register})[0] == [
        ("Longer is longer.", "2026-11-25, 01234567+changes", "none")
    ]
