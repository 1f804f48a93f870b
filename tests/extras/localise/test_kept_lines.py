"""A change that a library makes concerns the changed lines alone, whatever form it writes the others in."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from softsearch.extras.localise.kept_lines import merged


def test_lines_that_were_not_changed_stay() -> None:
    data = b"a = 1\nb=2\n\n\nc = [1, 2]\nd = 4\n"
    before = b"a=1\nb=2\nc=[\n1\n2]\nd=4\n"
    assert merged(data, before, before) == data
    assert merged(data, before, before.replace(b"b=2\n", b"b=3\n")) == data.replace(b"b=2\n", b"b=3\n")
    assert merged(before, before, data) == data
    indented = b"  a  = 1\n\tb=2\n  c =3\n"  # next to a change lines of another form stay, too
    assert merged(indented, b"a = 1\nb = 2\nc = 3\n", b"a = 1\nc = 3\n") == b"  a  = 1\n  c =3\n"
    blank = b"a=1\nb=2\n\n"  # what is new at the end is before the end's blank lines
    assert merged(blank, b"a = 1\nb = 2\n", b"a = 1\nb = 2\nc = 3\n") == b"a=1\nb=2\nc = 3\n\n"
    crlf = b"a=1\r\nb=2 \r\nc=3"
    assert merged(crlf, b"a=1\nb=2\nc=3", b"a=9\nb=2\nc=3\nd=4") == b"a=9\r\nb=2 \r\nc=3\r\nd=4"


VALUES = st.one_of(st.text("ab", max_size=2), st.lists(st.sampled_from("ab"), max_size=3))


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), VALUES, max_size=6), st.data())
def test_what_is_merged_has_the_change(content: dict[str, Any], draw: st.DataObject) -> None:
    rows = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()]
    data = "{\n" + ",\n".join(draw.draw(st.sampled_from([row, f"  {row}", f"\n{row}"])) for row in rows) + "\n}\n"
    changed = dict(content)
    for key in draw.draw(st.lists(st.sampled_from([*content, "new"]), max_size=3)):
        changed[key] = draw.draw(VALUES)
    before, after = (f"{json.dumps(each, indent=1)}\n".encode() for each in (content, changed))
    assert json.loads(merged(data.encode(), before, after)) == changed
