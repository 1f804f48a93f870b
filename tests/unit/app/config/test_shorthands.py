"""Words of a command line that people type in their own order, and the names of a sweep's folders."""

import shlex
import subprocess
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from softsearch.app.config.shorthands import as_meant, names_of_jobs, shell_command
from softsearch.errors import ConfigError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bundle", "a=b"):
        (tmp_path / name).mkdir()
    for name in ("bundle/manifest.json", "a.en", "a.de", "m.ckpt", "a=b/run (1)"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (
            "train experiment=smallest --multirun model=rnn,gru seed=1",
            "--multirun experiment=smallest model=rnn,gru seed=1",
        ),
        ("train a=1 --config-dir FOLDER b=2 --cfg job c=3", "--config-dir FOLDER --cfg job a=1 b=2 c=3"),
        ("train init=RUN -m seed=1", "-m init.ckpt=RUN seed=1"),
        ("train --model rnn seed=1", "--model rnn seed=1"),
        ("evaluate RUN", "ckpt=RUN"),
        ("evaluate RUN m.ckpt search=greedy", "ckpt=[RUN,m.ckpt] search=greedy"),
        ("evaluate bundle RUN a.en a.de", "bundle=bundle ckpt=RUN test=[a.en,a.de]"),
        ("export 'a=b/run (1)'", """"ckpt='a=b/run (1)'\""""),
        ("score RUN a.en a.de tokens=true", "ckpt=RUN src=a.en tgt=a.de tokens=true"),
        ("export RUN OUT precision=int8", "ckpt=RUN out=OUT precision=int8"),
        ("export RUN out=OUT", "ckpt=RUN out=OUT"),
        ("compare RUN", "runs=RUN"),
        ("compare 'logs/train/*' OTHER split=val", "runs=[logs/train/*,OTHER] split=val"),
        ("reproduce search_curve scale=smallest", "claim=search_curve scale=smallest"),
        ("reproduce one two", "claim=[one,two]"),
        ("history rnn gru", "models=[rnn,gru]"),
        ("history model=rnn", "models=[rnn]"),
        ("average 'my run' last=2", "'run=my run' last=2"),
        ("sweep quality trials=3", "sweep=quality trials=3"),
        ("train --help model", "--help model"),
        ("evaluate --help ckpt", "--help ckpt"),
        ("evaluate run.ckpt --help", "--help run.ckpt"),
        ("evaluate bundle --help", "--help"),
        ("evaluate -m a,b", "-m ckpt=a,b"),
        ("evaluate a,b", "\"ckpt='a,b'\""),
        ("train 'data.train={de,fr}/**/*.po'", "\"data.train='{de,fr}/**/*.po'\""),
        ("train 'model={a: 1, b: {c: 2}}' 'name=${a,b}'", "'model={a: 1, b: {c: 2}}' 'name=${a,b}'"),
        ("train --cfg job data.train=~/a", "--cfg job data.train=" + str(Path("~/a").expanduser())),
    ],
)
def test_words_are_read_as_they_are_meant(typed: str, read: str) -> None:
    command, *words = shlex.split(typed)
    assert as_meant(command, words) == shlex.split(read)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("export RUN OUT MORE", "'MORE' is one word too many; expected softsearch export ckpt=... out=..."),
        ("compare RUN runs=OTHER", "RUN and runs=OTHER both set runs; remove one of them"),
    ],
)
def test_too_many_words(typed: str, message: str) -> None:
    command, *words = typed.split()
    with pytest.raises(ConfigError) as error:
        as_meant(command, words)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["softsearch", "export", "ckpt=logs/a", "out=b"], "softsearch export ckpt=logs/a out=b"),
        (["ckpt='a=b'"], """ckpt="'a=b'\""""),
        (["data.train=[a.en,a.de]"], "data.train='[a.en,a.de]'"),
        (["a b", "~/c", "$x`'", "", "k="], """'a b' '~/c' "\\$x\\`'" '' k="""),
    ],
)
def test_a_shell_reads_what_is_printed(words: list[str], shown: str) -> None:
    assert shell_command(words) == shown
    done = subprocess.run(["sh", "-c", f"printf '%s\\n' {shown}"], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == words


@pytest.mark.parametrize(
    ("typed", "further"),
    [
        ("experiment=demo model=rnn,gru seed=1", "hydra.job.config.override_dirname.exclude_keys=[experiment,seed]"),
        ("seed=range(1,4) init.ckpt=a/x,b/x", "hydra.job.config.override_dirname.exclude_keys=[init.ckpt]"),
        ("init.ckpt=a/x,b/x", "hydra.sweep.subdir=${hydra.job.num}"),
        ("seed=1,2 hydra.sweep.subdir=x", ""),
    ],
)
def test_folders_of_a_sweep_are_named_by_what_differs(typed: str, further: str) -> None:
    overrides = OverridesParser.create().parse_overrides(typed.split())
    assert names_of_jobs(overrides) == further.split()
