"""The stages of a translation: languages, paragraphs, markup, terms, unknown words, confidence, traces and heads."""
