"""HTML's elements by name, in the categories of the HTML standard (html.spec.whatwg.org), obsolete ones included."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


VOID = _names("area base basefont bgsound br col embed hr img input keygen link meta param source track wbr")
OPTIONAL = _names(  # their end tags may be missing
    "html head body p li dt dd option optgroup rt rp colgroup caption thead tbody tfoot tr td th"
)
# Phrasing content, which is part of a sentence.
PHRASING = _names(
    "a abbr acronym applet area b bdi bdo big blink br button canvas cite code data datalist del dfn em embed font i "
    "img input ins kbd label link map mark marquee math meta meter nobr output picture progress q rb rp rt rtc ruby s "
    "samp script slot small span strike strong style sub sup svg time tt u var wbr"
)
BLOCKS = (OPTIONAL - PHRASING) | _names(
    "address article aside audio blockquote center details dialog dir div dl fieldset figcaption figure footer form h1 "
    "h2 h3 h4 h5 h6 header hgroup hr iframe legend listing main menu nav noembed noframes noscript object ol plaintext "
    "pre search section select summary table template textarea title ul video xmp"
)
WITH_LINES = _names("pre listing xmp plaintext textarea")  # their line ends are kept
RAW_TEXT = _names("script style")  # in them, < begins no tag
# What they contain is for programs or comes from them, and formulas and drawings: no language to translate.
CODE = RAW_TEXT | _names("code kbd samp var tt pre listing xmp plaintext iframe noembed noframes math svg")
FOREIGN = _names("math svg")  # also with the prefix of a namespace

# For the construction of the tree: what closes what.
FORMATTING = _names("a b big code em font i nobr s small strike strong tt u")  # continue in the next block
HEADINGS = _names("h1 h2 h3 h4 h5 h6")
SPECIAL = (
    VOID
    | HEADINGS
    | _names(
        "address applet article aside blockquote body button caption center colgroup dd details dir div dl dt fieldset "
        "figcaption figure footer form frame frameset head header hgroup html iframe li listing main marquee menu nav "
        "noembed noframes noscript object ol p plaintext pre script search section select style summary table tbody td "
        "template textarea tfoot th thead title tr ul xmp"
    )
)
CLOSES_P = HEADINGS | _names(
    "address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form "
    "header hgroup hr li listing main menu nav ol p plaintext pre search section summary table ul xmp"
)
SCOPE = _names("applet caption html marquee object table td template th")  # an end tag closes nothing around these
MARKED = _names(
    "applet caption marquee object td template th"
)  # formatting elements do not continue in or behind these
TABLE_CONTEXTS = {  # the part of a table: the elements in which it stands, all others are closed
    "td": _names("tr tbody thead tfoot table template"),
    "th": _names("tr tbody thead tfoot table template"),
    "tr": _names("tbody thead tfoot table template"),
    "col": _names("colgroup table template"),
} | dict.fromkeys(("caption", "colgroup", "tbody", "thead", "tfoot"), _names("table template"))
IMPLIED = _names("dd dt li optgroup option p rb rp rt rtc")  # end with what is around them
RUBY = _names("rb rp rt rtc")
NO_MARKUP = _names("script style xmp iframe noembed noframes textarea title plaintext")  # in them, < begins no tag
