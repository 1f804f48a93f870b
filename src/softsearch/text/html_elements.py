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
