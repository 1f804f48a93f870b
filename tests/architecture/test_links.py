"""Every link in the Markdown leads to a file and a heading that exist; addresses elsewhere are well formed."""

import re
import subprocess
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.install_source import installing_from

GENERATED = {"options.md", "reliability.md"}  # by `make docs`; a clone has no links to them
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(
        r"^#+ (.+)$", CODE.sub(lambda code: code[0].strip("`"), page.read_text("utf-8")), re.MULTILINE
    )
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings)


def problem(page: Path, link: str) -> str:
    """What is wrong with a link of a page; empty if it is right."""
    parts = urlsplit(link)
    if parts.scheme:
        good = parts.scheme in ("http", "https") and re.fullmatch(r"localhost:\d+|[\w-]+(\.[\w-]+)+", parts.netloc)
        return "" if good else "no address"
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.name in GENERATED:
        return "not in a clone"
    if not target.exists():
        return "no such file"
    if any(folder.name == "docs" and not target.is_relative_to(folder) for folder in page.parents):
        return "not on the site"
    is_page = parts.fragment and target.suffix == ".md"
    return f"no heading #{parts.fragment}" if is_page and parts.fragment not in anchors(target) else ""


def test_links_lead_somewhere(repo_root: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=repo_root, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone")
    pages = [repo_root / name for name in listed.stdout.splitlines()]
    links = [(page, link) for page in pages for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))]
    wrong = [f"{page.relative_to(repo_root)}: {link}: {why}" for page, link in links if (why := problem(page, link))]
    assert len(links) > 150
    assert not wrong, "\n".join(wrong)
    bad = ("docs/nope.md", "docs/search.md#nope", "#nope", "https://nope", "htps://example.com")
    assert all(problem(repo_root / "README.md", link) for link in bad)
    assert problem(repo_root / "docs/data.md", "../README.md")


def test_pages_install_from_the_source_of_the_build(repo_root: Path) -> None:
    pages = [repo_root / "README.md", *(repo_root / "docs").glob("*.md")]
    texts = [text for page in pages if page.name not in GENERATED for text in page.read_text("utf-8").splitlines()]
    typed = [text for text in texts if "pip install" in text and re.search(r"softsearch|\[", text)]
    assert len(typed) > 8
    assert not [text for text in typed if re.search(r"pip install [\"']?softsearch", text)]
    for source, name in (
        ("softsearch", "softsearch[cpu,serve]"),
        ("/a/clone", "/a/clone[cpu,serve]"),
        ("git+https://a.example/b", "softsearch[cpu,serve] @ git+https://a.example/b"),
    ):
        for quote in ('"', "'", '\\"'):  # of HTML and JSON
            typed = f"pip install {quote}.[cpu,serve]{quote}"
            assert installing_from(source, typed) == f"pip install {quote}{name}{quote}"
    other = "data.train=[a.en,a.de] '.[0-9]' pip install -e '.[test]'"  # of a user's own package
    assert installing_from("softsearch", other) == other
