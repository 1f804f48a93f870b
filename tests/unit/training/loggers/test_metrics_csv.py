"""metrics.csv: a row for each step, complete at every moment, continued after an interruption."""

import csv
from pathlib import Path

import pytest

from softsearch.training.loggers.metrics_csv import MetricsFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.csv"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return [{k: v for k, v in row.items() if v} for row in csv.DictReader(file)]


def test_columns_grow_with_the_metrics(path: Path) -> None:
    logger = MetricsFile(path=path)
    logger.log_metrics({"train/loss": 3.5}, step=10)
    logger.log_metrics({"val/loss": 2.5}, step=10)
    logger.log_metrics({"train/loss": 3.0, "lr": 0.1}, step=20)
    assert path.read_text().splitlines()[0] == "step,train/loss,val/loss,lr"
    assert rows(path) == [
        {"step": "10", "train/loss": "3.5", "val/loss": "2.5"},
        {"step": "20", "train/loss": "3.0", "lr": "0.1"},
    ]


def test_the_file_is_complete_after_every_line(path: Path) -> None:
    logger = MetricsFile(path=path)
    for step in range(3):
        logger.log_metrics({"loss": float(step)}, step=step)
        assert len(rows(path)) == step + 1
        assert list(path.parent.iterdir()) == [path]


def test_a_resumed_run_keeps_earlier_rows_and_drops_later_ones(path: Path) -> None:
    before = MetricsFile(path=path)
    for step in (10, 20, 30):
        before.log_metrics({"loss": float(step), "only/before": 1.0}, step=step)
    resumed = MetricsFile(path=path)
    resumed.log_metrics({"loss": 99.0, "new": 2.0}, step=20)
    assert rows(path) == [
        {"step": "10", "loss": "10.0", "only/before": "1.0"},
        {"step": "20", "loss": "99.0", "only/before": "1.0", "new": "2.0"},
    ]
    resumed.log_metrics({"loss": 98.0}, step=30)
    assert [row["step"] for row in rows(path)] == ["10", "20", "30"]


def test_a_finished_run_that_is_resumed_keeps_its_last_row(path: Path) -> None:
    """It logs only the scores of its test, again."""
    logger = MetricsFile(path=path)
    logger.log_metrics({"train/loss": 2.0, "val/bleu": 30.0}, step=20)
    logger.log_metrics({"test/bleu": 29.0}, step=20)
    before = path.read_bytes()
    MetricsFile(path=path).log_metrics({"test/bleu": 29.0}, step=20)
    assert path.read_bytes() == before


def test_no_step_is_step_zero(path: Path) -> None:
    MetricsFile(path=path).log_metrics({"loss": 1.0})
    assert rows(path) == [{"step": "0", "loss": "1.0"}]


def test_rows_are_appended_and_rewritten_only_for_a_new_column_or_a_known_step(path: Path) -> None:
    """A file that is replaced has another inode: to write all rows at each log takes time that grows with the run."""
    logger = MetricsFile(path=path)
    replaced, before = [], None
    for step in range(20):
        logger.log_metrics({"train/loss": float(step)}, step=step)
        if step in (9, 19):
            logger.log_metrics({"val/loss": step / 2}, step=step)
        if path.stat().st_ino != before:
            replaced.append(step)
        before = path.stat().st_ino
    assert replaced == [0, 9, 19]
    assert [row["train/loss"] for row in rows(path)] == [str(float(step)) for step in range(20)]
    assert {row["step"]: row["val/loss"] for row in rows(path) if "val/loss" in row} == {"9": "4.5", "19": "9.5"}


def test_a_row_that_was_cut_off_is_left_out_by_a_resumed_run(path: Path) -> None:
    before = MetricsFile(path=path)
    for step in (100, 200, 1234):
        before.log_metrics({"loss": float(step)}, step=step)
    path.write_bytes(path.read_bytes()[: -len("34,1234.0\r\n")])  # "12" is left of the last row
    MetricsFile(path=path).log_metrics({"loss": 5.0}, step=1000)
    assert [row["step"] for row in rows(path)] == ["100", "200", "1000"]
