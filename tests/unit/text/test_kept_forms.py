"""Forms that are usually copied are found whole or not at all, and words around them stay text."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.text import kept_forms
from softsearch.text.keep import Keep
from softsearch.text.kept_forms import usual_spans

USUAL = Keep(usual=True)
# Two spaces separate forms.
FORMS = r"""
%s  %1$s  %2$d  %@  %ld  %lld  %05.2f  100%%  %(name)s  %-10s  %+5d  %#x  %5$-10.3lf  %.*f  %*d  %'d  %zu  %I64d
%1$@  %1$tY  %,d  %(user.name)s  %<a>05.2f  %1  %n  %L1  %PRODUCTNAME  50%d  %%  {0}  {}  {name}  {a[0]}
{{name}}  {user.name}  {{ name }}  {n, number}  {0,number,integer}  {n, plural, one {# file} other {# files}}
{0:.2f}  {x!r:>10}  {{{raw}}}  {g, select, male {{n, plural, one {He} other {They}}} other {They}}
{{ x | date }}  {% if x %}  {{#if x}}  %{name}  #{name}  ${name}  ${a + b}  $name  $1  $t(key)  $HOME  $name$
$user.name  $a->b  $(ls)  __count__  [[x]]  @anna  #tag  <x id="1"/>  <b>  </a>  <br />  <a href='x y' b=2>
<![CDATA[bold]]>  <!-- note 5 -->  <0x0A>  &nbsp;  &#160;  \n  \u00e4  https://example.org/a_(b)
https://example.org/a?b=c  www.example.org  example.org/a  someone@example.org  192.168.0.1
mailto:a@example.org  /etc/passwd  ~/.ssh/id_1  report_v2.pdf  report-2.tar.gz  C:\new\file.txt  --size=5
`rm -rf 5`  ```code```  v1.2.3  123e4567-e89b-12d3-a456-426614174000  12:30:05  2026-11-28  2026-11-28T10:30:00Z
$1,234.56  12.5%  US$5  5€  1 234 567  1'234'567  1.5e-3  0x1F  −5  10-20  10–20  ١٢٫٥  ۱۲  1920x1080  20°C
10%-20%  %100  2026-11-28T10:30:00+02:00  2026-11-28T10:30:00.123Z
<%= name %>  <?= $name ?>  <0>  </12>  <1/>  <#name>  </#list>  <@form />
+49 30 123456  \(name)  \(user.name(at: 5))  \(x + y\)  @:menu.open  @.lower:key  %[name]s
%[price].2f  %(value)r  %-10r  %<PRIu64>  %1$<PRIu64>  %-5<PRIx32>  ~a  ~%  <xliff:g id="n" example="5">%d</xliff:g>
\LaTeX  \arabic{casei}  <?>  <?php x ?>  %1%  %|1$+5|  %0:s  #NAME#  @NAME@
%APPDATA%\Office\4\user  {Folder}\share\Scripts\python
"""
WHOLE = re.split("  +|\n", FORMS.strip())


@pytest.mark.parametrize("form", WHOLE)
@pytest.mark.parametrize("around", ["{}", "Open {} now", "„{}“, or ({}).", "打开 {} 文件", "{}: two {}!"])
def test_a_form_is_copied_whole(form: str, around: str) -> None:
    text = around.replace("{}", form)
    assert [each.text for each in USUAL.find(text)] == [form] * around.count("{}")


@given(st.text(alphabet="aZ\u00e4\u00df\u05d0\u6253\u0301 \n,;!?'\"()\u2019\u201e\u2026.", max_size=30))
def test_sentences_without_other_signs_have_no_form(text: str) -> None:
    """So they are not searched."""
    searched = [form for form in kept_forms._FORMS if kept_forms._compiled(form).search(text)]
    if kept_forms._compiled(kept_forms._SIGN).search(text) is None:
        assert searched == []


@pytest.mark.parametrize(
    "form",
    ["%s", "%1$s", "%1", "%n", "$name", "{name}", "5", "example.org/a", "https://example.org/a", "report_v2.pdf"],
)
def test_words_of_scripts_without_spaces_stand_beside_it(form: str) -> None:
    assert [each.text for each in USUAL.find(f"打开{form}文件。")] == [form]


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        ("5 % of", ["5"]),
        ("%1$dh %2$dm, %1$sx%2$s, %(n)dpx, %dx%d", ["%1$d", "%2$d", "%1$s", "%2$s", "%(n)d", "%dx%d"]),
        ("100%1% 3%2:s", []),
        ("I am 100% sure, 100 % sure", ["100%", "100"]),
        ("20%discount", []),
        ("%1%2: %12%3, 50%1", ["%1%2", "%12%3"]),
        ("\\textbf{a b} one\\ntwo", ["\\textbf", "\\n"]),
        ("{name}\\nNext, %HOME%\\nNext", ["{name}\\n", "%HOME%\\n"]),
        ("~a5 a~b ~all", []),
        ("21st H2O A4 3D 5kg mp3 R2D2", []),
        ("COVID-19, SN-2024-00123-A, 00:1B:44:11:3A:B7, 2001:db8::1, 1.2.3-rc1", []),
        ("a 20-year-old in mid-2024, the 1990's, l'8 mai, size=5", ["20", "2024", "1990", "8", "5"]),
        ("in 2024, 100 people; 1. 2)", ["2024", "100", "1", "2"]),
        ("he said: stop.Then go, e.g. this and/or that, either /or", []),
        ("{see the next page} and {a b}, [name], a < b and c > d", []),
        ("{ unbalanced {name}", ["{name}"]),
        ("{n, plural, one {# file} other", []),
        ("{# a comment #}", ["{# a comment #}"]),
        ("{name}s, %ss, {0}{1}", ["{name}", "%ss", "{0}{1}"]),
        ("one\\ntwo", ["\\n"]),
        ("all :count of „:Name“ (:a_b) :+1:.", [":count", ":Name", ":a_b", ":+1:"]),
        ("one:two, 3: four, a::b, the rest: :", ["3"]),
        ("第3章 2024年5月", ["3", "2024", "5"]),
        ("https://example.org/a, and https://example.org.", ["https://example.org/a", "https://example.org"]),
    ],
)
def test_ordinary_text_stays_text(text: str, copied: list[str]) -> None:
    assert [each.text for each in USUAL.find(text)] == copied


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}(\.[a-z]{1,5})?", fullmatch=True)
PRINTF = st.builds(
    "%{}{}{}{}{}{}".format,
    st.sampled_from(["", "1$", "12$"]),
    st.sampled_from(["", "-", "+", "0", "#", "-0"]),
    st.sampled_from(["", "5", "10", "*"]),
    st.sampled_from(["", ".2", ".10", ".*"]),
    st.sampled_from(["", "h", "hh", "l", "ll", "z", "j"]),
    st.sampled_from([*"diouxXeEfgGcsp"]),
)
BRACED = st.recursive(
    st.builds("{{{}}}".format, NAMES),
    lambda inner: st.builds(
        "{{{}, {}, one {{{} file}} other {{# {}}}}}".format, NAMES, st.just("plural"), inner, inner
    ),
    max_leaves=5,
)
OTHERS = st.one_of(*(NAMES.map(form.format) for form in ("${}", "%({})s", "{{{{{}}}}}", "${{{}}}", "{{{{ {} }}}}")))


@given(PRINTF | BRACED | OTHERS)
def test_neighbours_are_copied_whole(form: str) -> None:
    assert [each.text for each in USUAL.find(f"Copy {form} here")] == [form]


@pytest.mark.parametrize(
    "part", ["a.", "a-", "1.", "a'", "{a", "}{", "<!--", "http://a(", "<a b=", "%(", "1 ", "é", "v1."]
)
def test_a_long_line_takes_no_longer_than_its_length(part: str) -> None:
    began = time.process_time()
    list(usual_spans(part * 2500, lambda: 60.0))
    assert time.process_time() - began < 3
