"""Commands are read from one list, to which any installed package adds its own."""

import json
import sys
import tomllib
from dataclasses import fields
from importlib.metadata import distribution
from pathlib import Path
from pkgutil import resolve_name

import pytest

from softsearch import __main__
from softsearch.app.config.composition import CONFIGS
from softsearch.app.doctor import doctor, plugins
from softsearch.app.new import add_options, new
from softsearch.commands import CORE, ENTRY_POINTS, Command, every_command, find
from softsearch.errors import ConfigError
from softsearch.process import how_to_install
from softsearch.runtime import cli
from softsearch.runtime.arguments import Parser
from softsearch.runtime.completion import completion
from tests.support.programs import run_python

FLAGS = """
from softsearch.commands import Command

GREET = Command("greet", "Greets", run="greeting:greet", options="greeting:add_options", needs="hf")

def add_options(parser):
    parser.add_argument("name")
    parser.add_argument("--loud", action="store_true")

def greet(arguments):
    print(f"hello {arguments.name}".upper() if arguments.loud else f"hello {arguments.name}")
    if arguments.name == "nobody":
        import no_such_package
"""


def installed(site: Path, package: str, entries: str) -> None:
    """Makes the modules in ``site`` an installed package, as pip does."""
    info = site / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{entries}\n")


@pytest.fixture
def greeting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "greeting.py").write_text(FLAGS)
    (tmp_path / "quitting.py").write_text("raise SystemExit(0)\n")
    points = ("greet = greeting:GREET", "train = greeting:GREET", "broken = greeting:MISSING", "quits = quitting:GREET")
    installed(tmp_path, "greeting", "\n".join(points))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "greeting", raising=False)
    return tmp_path


def test_the_installed_softsearch_lists_what_pyproject_does(repo_root: Path) -> None:
    listed = tomllib.loads((repo_root / "pyproject.toml").read_text())["project"]["entry-points"]
    ours = distribution("softsearch").entry_points
    found = {group: {point.name: point.value for point in ours if point.group == group} for group in listed}
    assert found == listed, "softsearch is installed with other entry points than pyproject.toml has: run make setup"


@pytest.mark.parametrize("command", [*every_command()], ids=lambda command: f"{command.name} {command.takes}")
def test_what_a_command_names_exists(command: Command) -> None:
    assert command.summary[0].isupper()
    assert not command.summary.endswith(".")
    if command.options:
        resolve_name(command.options)
    assert (CONFIGS / f"{command.name}.yaml").is_file() == (command.takes == "key=value" or command.name == "score")
    file, _, function = command.run.partition(":")
    source = Path(sys.modules["softsearch"].__path__[0], *file.split(".")[1:]).with_suffix(".py").read_text()
    assert f"\ndef {function}(" in source


@pytest.mark.parametrize("command", [*every_command()], ids=lambda command: f"{command.name} {command.takes}")
def test_each_option_that_names_an_output_is_listed(command: Command) -> None:
    names = set[str]()
    if command.takes == "flags":
        names = {name.strip("-").replace("-", "_") for name in cli.parser_of(command).option_names()}
    elif command.options:
        names = {each.name for each in fields(resolve_name(command.options))}
    outputs = names & {"out", "output", "table", "alignments", "attention", "trace", "confidence"}
    if command.name == "evaluate":
        outputs -= {"alignments"}  # true or false
    assert outputs <= {each.partition("/")[0] for each in command.writes}
    assert {each.partition("/")[0] for each in command.writes} <= names


def test_entry_points_are_read_for_other_words_than_those_of_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(**_: str) -> None:
        raise AssertionError

    monkeypatch.setattr("importlib.metadata.entry_points", unexpected)
    assert find(["train", "model=gru"]) is CORE["train"]
    assert find(["translate", "bundle"]) is CORE["translate"]
    with pytest.raises(AssertionError):
        find(["sweep"])


def test_a_package_adds_a_command_with_flags(greeting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["greet", "world", "--loud"]) == 0
    assert capsys.readouterr().out == "HELLO WORLD\n"
    with pytest.raises(SystemExit, match="2"):
        cli.main(["greet", "world", "--lod"])
    assert "there is no option --lod; did you mean --loud?" in capsys.readouterr().err
    assert cli.main(["greet", "nobody"]) == 1
    expected = "softsearch: error: greet needs no_such_package, which is not installed: " + how_to_install("hf") + "\n"
    assert capsys.readouterr().err == expected
    with pytest.raises(SystemExit, match="2"):
        cli.main(["gret"])
    assert "did you mean 'greet'?" in capsys.readouterr().err
    assert find(["train"]) is CORE["train"]  # the core's own


def test_lists_have_the_commands_of_packages(greeting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    said = capsys.readouterr().out
    assert "  greet       greets\n" in said
    assert "  broken      broken of greeting cannot be loaded (AttributeError: " in said
    assert "  quits       quits of greeting cannot be loaded (SystemExit: 0); install greeting again\n" in said
    plugins()
    assert "greeting 1.0" in capsys.readouterr().out
    completion()
    assert "greet) words='--help --loud -h' ;;" in capsys.readouterr().out
    doctor()
    assert "(greet; data=huggingface)" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"broken of greeting cannot be loaded .*; install greeting again"):
        find(["broken"])
    assert cli.main(["broken"]) == 2


def test_a_stale_installation_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])
    with pytest.raises(SystemExit, match="2"):
        cli.main(["serve", "bundle"])
    assert "there is no command 'serve'" in (said := capsys.readouterr().err)
    assert "install it again (in a clone: make setup)" in said


def make(part: str, name: str) -> None:
    add_options(parser := Parser())
    new(parser.parse_args([part, name]))


def test_a_new_command_is_a_package_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make("metric", "words")
    assert ENTRY_POINTS not in Path("words/pyproject.toml").read_text()
    make("command", "words")
    entries = tomllib.loads(Path("words/pyproject.toml").read_text())["project"]["entry-points"][ENTRY_POINTS]
    installed(tmp_path / "site", "words", "\n".join(f"{name} = {value}" for name, value in entries.items()))
    Path("text").write_text("a\na b c\na b\n")
    path = f"{tmp_path}/site:{tmp_path}/words:{':'.join(sys.path)}"
    code = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from softsearch.__main__ import main

answers = []
for line in json.loads(sys.argv[1]):
    sys.argv = ["softsearch", *line.split()]
    with redirect_stdout(StringIO()) as out, redirect_stderr(out):
        try:
            main()
        except SystemExit:
            pass
    answers.append(out.getvalue())
print(json.dumps(answers))
"""
    lines = ["words text=text longest=1", "words --help", "words text=text longest=0", "words longer=1"]
    done = run_python("-c", code, json.dumps(lines), cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    ran, helped, wrong, misspelt = json.loads(done.stdout)
    assert ran == "3 sentences, 6 words\na b c\n"
    assert "softsearch words [KEY=VALUE ...]\n\nPrints how long a text is, and its longest sentences.\n" in helped
    assert "longest=3                     sentences to print" in helped
    assert "longest is 0 (int), expected a whole number of at least 1" in wrong
    assert "there is no config key 'longer'; did you mean 'longest'?" in misspelt
    with pytest.raises(ConfigError, match=r"command\.py exists"):
        make("command", "words")
    with pytest.raises(ConfigError, match="softsearch already has a command demo"):
        make("command", "demo")


@pytest.mark.parametrize("name", ["torch", "hydra", "hydra_core", "regex", "wandb", "softsearch", "tests", "signal"])
def test_a_new_package_replaces_none(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"'{name}' (is an installed package|cannot be the name of a package)"):
        make("model", name)
    assert not [*tmp_path.iterdir()]


def test_a_command_is_started_by_what_it_takes(greeting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["softsearch", "greet", "you"])
    assert __main__.main() == 0
