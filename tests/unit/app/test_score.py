"""The command that scores known translations, on bundles and in this process."""

from pathlib import Path

import pytest

from softsearch.app.config.composition import composed
from softsearch.app.config.options import Score
from softsearch.app.config.validation import read_options
from softsearch.app.score import score
from softsearch.errors import SoftsearchError
from tests.support.bundles import SRC_LINES, TGT_LINES, make_bundle


def run_score(folder: Path, *overrides: str) -> None:
    config = composed("score", *overrides, f"run_dir={folder / 'out'}", f"cache_dir={folder / 'cache'}")
    score(read_options(config, Score))


def columns(path: Path) -> list[list[float]]:
    return [[float(value) for value in line.split("\t")[:2]] for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two bundles, ``one`` and ``two``, and the files ``x.en`` and ``x.de``, with an empty line each."""
    folder = tmp_path_factory.mktemp("scoring")
    for seed, name in enumerate(("one", "two")):
        make_bundle(folder / name, seed=seed)
    for name, lines in (("x.en", [*SRC_LINES[:3], "", "ten"]), ("x.de", [*TGT_LINES[:3], "zehn", ""])):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def test_each_system_gets_a_file_and_an_ensemble_is_one_system(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (f"bundle=[{folder / 'one'},{folder / 'two'}]", f"src={folder / 'x.en'}", f"tgt={folder / 'x.de'}")
    run_score(tmp_path, *given)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed] == ["one", "two"]
    assert all("5 pairs" in line for line in printed)
    one, two = (columns(tmp_path / "out" / f"scores.{name}.tsv") for name in ("one", "two"))
    assert one != two
    run_score(tmp_path / "both", *given, "ensemble=log_probs", "weights=[3,1]")
    for ours, (first, tokens), (second, _) in zip(
        columns(tmp_path / "both" / "out" / "scores.tsv"), one, two, strict=True
    ):
        assert ours[1] == tokens
        # A mean of log probabilities sums to less than 1 and is made to sum to 1 again, if at all: never below.
        assert ours[0] >= 0.75 * first + 0.25 * second - 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "no system is named"),
        (["bundle=ONE"], "a bundle does not say what to test it on"),
        (["bundle=ONE", "src=x.en"], "src=x.en and tgt=None: expected both or neither"),
        (["bundle=ONE", "src=x.en", "tgt=x.de"], "x.en does not exist"),
        (["bundle=ONE", "weights=[1.0]"], "weights is set, but ensemble is null"),
        (["bundle=ONE", "ensemble=unnormalised_log_probs"], "expected one of 'log_probs', 'probs' or null"),
        (["bundle=ONE", "tokens=yes_please"], "tokens is 'yes_please'"),
    ],
)
def test_wrong_options_are_answered_with_what_to_do(
    options: list[str], message: str, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(SoftsearchError, match=message):
        run_score(tmp_path, *(option.replace("ONE", str(folder / "one")) for option in options))
    assert not (tmp_path / "out").exists()
