"""Every command of the README and of docs/ runs as it is typed."""

from pathlib import Path

import pytest

from tests.integration.documented import ELSEWHERE, PAGES, carry_out, commands, prepare

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documented")
    prepare(folder)
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE and commands(page)])
def test_the_commands_of_a_page_run(page: str, workplace: Path) -> None:
    carry_out(commands(page), workplace)


def test_parts_of_a_file_give_its_translation(workplace: Path) -> None:
    page = commands("docs/many-hosts.md")
    carry_out([*page, "softsearch translate exports/NAME --input in.txt --output whole.txt"], workplace)
    assert (workplace / "part.03").stat().st_size
    assert (workplace / "joined.txt").read_bytes() == (workplace / "whole.txt").read_bytes()
