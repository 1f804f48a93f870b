"""Every command of the README and of docs/ runs as it is typed."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from softsearch.app.config.composition import composed
from softsearch.commands import named
from tests.support.commands import made_once
from tests.support.documented import ELSEWHERE, PAGES, ask, carry_out, commands, fields, paths, prepare, requests
from tests.support.serving import BUNDLE, serving

pytestmark = pytest.mark.day

FROM_FILES = ("init=", "experiment=mine")  # what such options say is in files


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A worker's own copy of what the first of them makes."""
    common, folder = made_once(tmp_path_factory, "documented", prepare), tmp_path_factory.mktemp("documented")
    shutil.copytree(common, folder, symlinks=True, dirs_exist_ok=True)
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_the_options_of_a_page_exist(page: str) -> None:
    for line in commands(page):
        _, name, *words = shlex.split(line)
        options = [word for word in words if "=" in word and not word.startswith(FROM_FILES)]
        command = named(name)
        if command and command.takes == "key=value" and len(options) == len(words):
            composed(name, *options)


@pytest.mark.nightly  # by day test_commands.py trains, evaluates, exports and translates
@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE and commands(page)])
def test_the_commands_of_a_page_run(page: str, workplace: Path) -> None:
    carry_out(commands(page), workplace)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_requests_of_the_pages_are_answered(tmp_path: Path) -> None:
    """Here by any model; test_demo.py compares the answers."""
    (tmp_path / "legal.tsv").write_text("court\tgericht\n")
    with serving(f"demo={BUNDLE}", "--glossary", f"legal={tmp_path / 'legal.tsv'}") as served:
        for command, _ in (request for page in PAGES for request in requests(page)):
            assert ask(served.url, command)
        named = [field for page in PAGES for field in fields(page)]
        assert {"confidence", "trace", "glossary"} <= {name for field in named for name in field}
        for field in named:
            body = json.dumps({"text": "ten"} | field)
            assert json.loads(ask(served.url, ["curl", "localhost:8000/translate", "--json", body])).keys() >= {"model"}
        described = paths("docs/server.md")
        assert {("POST", "/translate"), ("GET", "/models"), ("GET", "/languages")} <= {*described}
        for method, path in described:
            reply = ["-o", str(tmp_path / "answer"), "-w", "%{http_code}"]  # a POST lacks its fields
            code = subprocess.run(
                ["curl", "-sSX", method, *reply, f"{served.url}{path}"], capture_output=True, check=True, text=True
            )
            assert code.stdout in {"GET": ("200",), "POST": ("400", "422")}[method], path
            if method == "POST":
                assert json.loads((tmp_path / "answer").read_text()).keys() == {"error"}


def test_parts_of_a_file_give_its_translation(workplace: Path) -> None:
    page = commands("docs/many-hosts.md")
    carry_out([*page, "softsearch translate exports/NAME --input in.txt --output whole.txt"], workplace)
    assert (workplace / "part.03").stat().st_size
    assert (workplace / "joined.txt").read_bytes() == (workplace / "whole.txt").read_bytes()
