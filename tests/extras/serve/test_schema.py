"""Fields of requests."""

import re
from pathlib import Path

from softsearch.extras.serve.schema import StreamRequest, TranslateRequest


def test_the_documentation_has_the_fields_of_requests(repo_root: Path) -> None:
    text = (repo_root / "docs" / "server.md").read_text(encoding="utf-8")
    both, more = (
        {
            name
            for names in re.findall(rf"^\| (`.*`) \| {place} \|", text, re.MULTILINE)
            for name in names.split("`")[1::2]
        }
        for place in ("both", "`/translate`")
    )
    table = (repo_root / "docs" / "search.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .* \| (yes|no|`\w+`) \| [^|]+ \|$", table, re.MULTILINE)
    assert len(rows) > 15
    assert not both & {name for name, _ in rows}
    both |= {name if taken == "yes" else taken.strip("`") for name, taken in rows} - {"no"}
    assert both == StreamRequest.model_fields.keys() - {"text"}
    assert both | more == TranslateRequest.model_fields.keys() - {"text"}
