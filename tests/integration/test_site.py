"""`make docs`: the site is whole, its links lead somewhere, and its search finds what people look for."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.commands import ROOT

pytestmark = pytest.mark.day


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    (folder / "src").symlink_to(ROOT / "src")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for page in ("options_page", "reliability_page", "api_pages"):
        subprocess.run([sys.executable, "-m", f"tests.{page}"], cwd=folder, env=environment, check=True)
    zensical = Path(sys.executable).with_name("zensical")
    done = subprocess.run([zensical, "build", "--strict"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.mark.nightly
def test_its_search_finds_the_beam_size(site: Path) -> None:
    items = json.loads((site / "search.json").read_text(encoding="utf-8"))["items"]
    found = {item["location"] for item in items if "beam size" in f"{item['title']} {item['text']}".lower()}
    assert "search.html#beam-size-and-other-options" in found
    assert any(location.startswith("options.html") for location in found)


@pytest.mark.nightly
def test_every_link_of_the_site_leads_to_a_file_and_a_place_in_it(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html") if path.name != "404.html"}
    places = {path: {*re.findall(r'\sid="?([^"\s>]+)', text)} for path, text in pages.items()}
    wrong = []
    for path, text in pages.items():
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (parts.fragment and unquote(parts.fragment) not in places.get(target, set())):
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert len(pages) > 20
    assert not wrong, "\n".join(wrong)
