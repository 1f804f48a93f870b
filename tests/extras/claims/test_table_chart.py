"""Charts of tables: what a figure cannot show must not keep a claim's page from being written."""

from pathlib import Path

from softsearch.extras.claims.table_chart import draw_rows


def test_seeds_with_the_same_number_have_a_bar(tmp_path: Path) -> None:
    rows = [{"run": "a", "loss": 0.1} for _ in range(3)]  # whose mean is 0.10000000000000002
    draw_rows(rows, tmp_path / "figure.png", kind="bar", x="run", y="loss")
    assert (tmp_path / "figure.png").stat().st_size > 1000
