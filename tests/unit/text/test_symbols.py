"""What is not language, as symbols, and back."""

import pytest

from softsearch.text.symbols import MATCH, MOST, SYMBOLS, mask, own_symbols, restored, spans_in, spans_of


@pytest.mark.parametrize(
    ("text", "masked", "spans"),
    [
        ("Copy %s?", "Copy <1>?", ("%s",)),
        ("Open <b>%(name)s</b> of 12", "Open <1><2><3> of 12", ("<b>", "%(name)s", "</b>")),
        ("<b0>Open</b0>", "<1>Open<2>", ("<b0>", "</b0>")),  # OmegaT's
        ("Open [X5X]", "Open <1>", ("[X5X]",)),  # Weblate's
        ("Run --force or --[no-]keep", "Run <1> or <2>", ("--force", "--[no-]keep")),
        ("\\0%c%c, %c", "<1><2>, <3>", ("\\0%c", "%c", "%c")),  # what overlaps is one
        ("for %s: %%sPlease", "for <1>: <2>sPlease", ("%s", "%%")),  # the second sign begins no placeholder
        ("--format=<format> </b>", "<1>=<2> <3>", ("--format", "<format>", "</b>")),
        ("<1>Open</1>", "<1>Open<2>", ("<1>", "</1>")),
        ("<2> of <1>", "<1> of <2>", ("<2>", "<1>")),
        ("<1> of <2>", "<1> of <2>", ()),
        (f"<2> Kopie {MATCH} Copy <1>", f"<2> Kopie {MATCH} Copy <1>", ()),
        ("nothing", "nothing", ()),
    ],
)
def test_what_is_not_language_becomes_symbols(text: str, masked: str, spans: tuple[str, ...]) -> None:
    assert mask(text) == (masked, spans)
    assert restored(masked, spans) == text or not spans


def test_only_so_many_symbols_exist() -> None:
    text, spans = mask("%s " * (MOST + 2))
    assert spans == ("%s",) * MOST
    assert text == " ".join((*SYMBOLS, "%s", "%s", ""))


@pytest.mark.parametrize(
    ("translation", "text"),
    [("<2>, <1>", "%d, %s"), ("a <1> b <1> <2>", "a %s b %d"), ("<3> a <1><2>", " a %s%d"), ("x <0> <1>", "x %s")],
)
def test_a_symbol_comes_back_once(translation: str, text: str) -> None:
    assert restored(translation, ("%s", "%d")) == text


@pytest.mark.parametrize(
    ("translation", "spans", "text"),
    [
        ("<1> in <2>", ("%s", "%d"), "%s in %d"),
        ("<2> in <1>", ("%s", "%-5.2f"), "%2$-5.2f in %1$s"),
        ("<3> <2> in <1>", ("%s", "<b>", "%ld"), "%2$ld <b> in %1$s"),
        ("<2>: <1>", ("0%o", "--size=%dpx"), "--size=%2$dpx: 0%1$o"),
        ("<2> <1>", ("%1$s", "%2$s"), "%2$s %1$s"),
        ("<2> <1>", ("%1", "%n"), "%n %1"),
        ("<2>. <1>", ("%B", "%d"), "%d. %B"),  # a date
        ("<2> <1>", ("%(name)s", "%s"), "%s %(name)s"),
        ("<2> <1>", ("%.*f", "%s"), None),
        ("<2> <1>", ("{}", "{}"), None),
        ("<2> <1>", ("~a", "~s"), None),
        ("<2> <1>", ("%s", "%user"), "%user %s"),
    ],
)
def test_placeholders_in_another_order_get_numbers(translation: str, spans: tuple[str, ...], text: str | None) -> None:
    found = spans_in(translation, spans)
    assert (found and restored(translation, found)) == text


def test_symbols_of_a_match_are_not_its_own() -> None:
    text = f"<1> Kopie <2> {MATCH} <1> copy"
    assert own_symbols(text) == [(text.rindex("<1>"), text.rindex("<1>") + 3)]
    assert own_symbols("<1> x <2>") == [(0, 3), (6, 9)]


def test_time_is_limited() -> None:
    with pytest.raises(TimeoutError):
        spans_of("a." * 5000, lambda: 1e-9)
