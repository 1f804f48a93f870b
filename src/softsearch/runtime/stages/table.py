"""The stages of the core with their options, without importing them: most translations need few."""

STAGES = {  # in the order in which lines pass them
    "languages:LanguageStage": ("tgt", "src"),
    "paragraphs:ParagraphStage": ("paragraphs",),
    "markup:MarkupStage": ("markup",),
    "symbols:SymbolStage": (),
    "terms:TermStage": ("glossary", "glossary_bonus", "keep", "keep_usual"),
    "unknown_words:UnknownWordStage": ("replace_unknown",),
    "heads:HeadStage": ("head",),
    "confidence:ConfidenceStage": ("confidence", "agreement"),
    "trace:TraceStage": ("trace",),
}
OPTIONS = {option: place for place, options in STAGES.items() for option in options}
ARGUMENTS = ("lines", "features", "search", "prefixes", "first_line")  # of ``Translator.translate``
