"""Translator: translates lines of text with verified bundles."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from softsearch.errors import ConfigError
from softsearch.machine import cores
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.line_encoder import LineEncoder
from softsearch.runtime.options import Search, choose_search, default_batch_tokens, nearest, needs_alignments
from softsearch.runtime.providers import Provider
from softsearch.runtime.reopened import Reopened
from softsearch.runtime.stages.chosen import NO_STAGES, Stages
from softsearch.runtime.stages.stage import Searched
from softsearch.runtime.system import System, open_bundle, without_alignments
from softsearch.runtime.translation import Candidate, Lines, Part, Translation, join_all, text_lines
from softsearch.search.batching import translate_ids
from softsearch.search.options import Average
from softsearch.text.features import Features

if TYPE_CHECKING:
    from softsearch.runtime.glossary import GlossaryLike
    from softsearch.runtime.term_encoder import TermEncoder
    from softsearch.runtime.translate_options import StreamOptions, TranslateOptions
    from softsearch.search.forced_decoding import PairScore
    from softsearch.search.rerank import RescoringModel
    from softsearch.search.shortlist import Shortlist

BLOCK_LINES = 1024  # lines of a stream translated together: enough to fill batches with sentences of similar length
BundleLike = Bundle | Path | str


class Translator(Reopened):
    """Translates text with a bundle, or with several as an ensemble; pickled, it opens their folders again.

    Examples:
        >>> from softsearch import Translator
        >>> translator = Translator("exports/demo")
        >>> one, other = translator.translate(["one two three", "ten"], beam=4, n_best=2, alignments=True)
        >>> [translation.text for translation in one.n_best] == [one.text, one.alternatives[0].text]
        True
        >>> one.alignments.shape == (len(one.tgt_pieces), len(one.src_pieces))
        True

    Args:
        bundle: an open bundle or its folder; several form an ensemble, which uses the first one's tokenizers and
            recommended search.
        weights: weights of an ensemble's members; equal by default.
        average: what an ensemble averages: ``log_probs``, ``unnormalised_log_probs`` or ``probs``.
        language_model: a bundle of the target language, for shallow fusion.
        language_model_weight: weight of its log probabilities.
        rescore: bundles that score the results of beam search; with any, the default search is ``rerank``.
        shortlist: use only this many frequent words, and the source's likely ones, from the first bundle's shortlist.
        batch_tokens: maximum source tokens in a batch, padding included; by default 2,560 divided by the hypotheses per
            sentence.
        threads: batches translated in parallel; by default one for each core that this process may use.
        tokenized: for a model of ``lc_tok`` text: whether lines and translations have this form; otherwise they are
            plain text.
        provider: ONNX Runtime's: ``cpu``, ``cuda``, ... or ``auto``, the first one installed, the CPU last.
        inputs: sources in a line, ``a man <and> un homme``, one for each bundle.
        glossary: terms that translations must contain: a file, or a mapping from source terms to translations.
        glossary_bonus: nats by which a translation with a term ranks higher; by default terms are required.
        keep: regular expressions (of the package regex) for text that translations copy unchanged.
        keep_usual: also copy addresses, file names, numbers, `code`, tags and placeholders such as {name} and %1$s.
        misspelt: catches unknown names, which are refused with the closest option.

    Raises:
        BundleError: a bundle is missing, altered or inconsistent, or has a newer format.
        ConfigError: bundles do not fit together, a weight is wrong, there is no shortlist, or ONNX Runtime does not
            use the provider.
    """

    def __init__(
        self,
        bundle: BundleLike | Sequence[BundleLike],
        *,
        weights: Sequence[float] | None = None,
        average: Average = "log_probs",
        language_model: BundleLike | None = None,
        language_model_weight: float = 0.0,
        rescore: Sequence[BundleLike] = (),
        shortlist: int | None = None,
        batch_tokens: int | None = None,
        threads: int | None = None,
        tokenized: bool = False,
        provider: Provider = "cpu",
        inputs: int = 1,
        glossary: "GlossaryLike | None" = None,
        glossary_bonus: float | None = None,
        keep: Sequence[str] | None = None,
        keep_usual: bool | None = None,
        **misspelt: Any,
    ) -> None:
        for name in misspelt:
            raise ConfigError(
                f"{name} is not an option of Translator{nearest(name, type(self).__init__.__kwdefaults__ or ())}"
            )
        bundles = [bundle] if isinstance(bundle, Bundle | Path | str) else list(bundle)
        if not bundles:
            raise ConfigError("no bundle is given; expected a bundle's folder, or several for an ensemble")
        first = bundles[0] if isinstance(bundles[0], Bundle) else Bundle.open(bundles[0])
        members = [open_bundle(path, provider) for path in (first, *bundles[1:])]
        fused = None if language_model is None else open_bundle(language_model, provider)
        words = None if shortlist is None else _shortlist(first, shortlist)
        if inputs > 1 and (rescore or shortlist):
            raise ConfigError(f"rescore and shortlist are for one input, not for {inputs}; leave them out")

        self.manifest = first.manifest
        together = partial(_together, inputs, average, weights, fused, language_model_weight, words)
        self.system = together(members)
        self._without_alignments = together([without_alignments(member) for member in members])
        scorers = [open_bundle(path, provider) for path in rescore]
        self._rescorers = _rescorers(scorers, self.system)
        max_src_tokens = min(s.max_src_tokens for s in (*members, *scorers) if s.max_src_tokens is not None)
        self._is_plain = self.system.text_form == "lc_tok" and not tokenized  # which the model itself does not read
        self.encoder = LineEncoder(
            self.system.tokenizers,
            max_src_tokens,
            first.manifest,
            is_plain=self._is_plain,
            src_lang=self.system.src_lang,
        )
        self._stages, _ = (
            Stages()
            .for_model(self.encoder)
            .given({"glossary": glossary, "glossary_bonus": glossary_bonus, "keep": keep, "keep_usual": keep_usual})
        )
        self._batch_tokens, self._threads = batch_tokens, cores() if threads is None else threads

    def translate(
        self,
        lines: Iterable[str] | None = None,
        *,
        features: Features | None = None,
        search: str | Search | None = None,
        prefixes: Sequence[str] | None = None,
        first_line: int = 1,
        **options: "Unpack[TranslateOptions]",
    ) -> list[Translation]:
        """Translates lines with one sentence each; a line too long for the model is split into parts.

        Blank lines give "" without the model; line ends inside a line are read as spaces.

        Args:
            lines: the text.
            features: ``[examples, positions, dim]``, instead of lines or together with them, as the model needs.
            search: its name, such as ``beam``, by default the one the first bundle recommends; or a strategy object.
            prefixes: the required beginning of each line's translation, or of that of its first part; "" for none.
            first_line: the number of the first line, for messages.
            options: of the search and of the stages of a translation, see docs/search.md; by default the first
                bundle's, and the Translator's.

        Returns:
            One translation for each line, with up to ``n_best - 1`` alternatives.

        Raises:
            InputError: lines, features or prefixes are missing or do not fit the model, or it returned NaN.
            ConfigError: an option is unknown or does not fit the model, or the splitter of paragraphs is missing.
            CorpusError: the features have the wrong type or shape, or a value is not finite.
        """
        stages, others = self._stages.given(options)
        stages.refuse(**options, features=features is not None, prefixes=prefixes is not None)
        read = None if lines is None else Lines.read(lines, first_line)
        text = None if read is None else stages.before(read, self.encoder)
        sources = self.encoder.sources(text and text.lines, features, first_line)
        tokenizer, recommended = self.system.tokenizers[1], (self.manifest.search_kind, self.manifest.search)
        strategy = stages.search(choose_search(search, others, recommended, tokenizer, self._rescorers))
        starts = None if prefixes is None else self.encoder.prefixes(prefixes, len(sources), first_line)
        found = self.translate_parts(stages.require(sources), strategy, starts, stages)
        return found if text is None else stages.after(found, text.kept)

    def translate_parts(
        self,
        sources: Sequence[Sequence[Part]],
        strategy: Search,
        prefixes: Sequence[Sequence[int]] | None = None,
        stages: Stages = NO_STAGES,
    ) -> list[Translation]:
        """Translates lines encoded by a `LineEncoder`.

        Args:
            sources: the parts of each line.
            strategy: the search.
            prefixes: the ids that the translation of each line's first part must begin with.
            stages: what is done with the translations of parts.

        Raises:
            SoftsearchError: as in `translate`.
        """
        system = self.system if needs_alignments(strategy) else self._without_alignments
        if system is self.system and not system.step_fn.has_attention:
            raise ConfigError(
                f"{system.origin} has no attention, but alignments, markup and coverage penalties need it; omit them"
            )
        parts = [part for line in sources for part in line]
        src, starts = [part.ids for part in parts], self.encoder.starts(sources, prefixes)
        require = self._term_encoder.require if any(part.wanted for part in parts) else None
        required = require and [require(part.wanted) for part in parts]
        terms = None if required is None else [each.terms for each in required]
        n_best_lists = translate_ids(
            system.step_fn,
            strategy,
            src,
            batch_tokens=default_batch_tokens(strategy) if self._batch_tokens is None else self._batch_tokens,
            prefixes=starts,
            terms=terms,
            workers=self._threads,
        )
        decode = self.system.tokenizers[1].decode
        pairs = zip(parts, n_best_lists, strict=True)
        found = [[Candidate(part, each, decode(each.tokens)) for each in n_best] for part, n_best in pairs]
        searched = Searched(self.system, strategy, parts, starts, terms, self._threads)
        found = stages.written(found, searched)
        if required is not None:
            found = self._term_encoder.complete(self.system, found, required)
        if self._is_plain:
            from softsearch.text.moses import detokenize

            found = [[each._replace(text=detokenize(each.text)) for each in n_best] for n_best in found]
        each_part = iter(found)
        join = partial(join_all, strategy, system.tokenizers, src_lang=system.src_lang)
        return [join([next(each_part) for _ in line]) for line in sources]

    def stream(self, lines: Iterable[str], **options: "Unpack[StreamOptions]") -> Iterator[Translation]:
        """Translates lines as they arrive, 1,024 at a time, so that memory stays bounded.

        Args:
            lines: the text, of any length.
            options: those of ``translate``, without prefixes.

        Raises:
            SoftsearchError: as in ``translate``.
        """
        source, first_line = text_lines("lines", lines, 1), 1
        while block := list(islice(source, BLOCK_LINES)):
            yield from self.translate(block, first_line=first_line, **options)
            first_line += len(block)

    def score(
        self,
        src_lines: Sequence[str],
        tgt_lines: Sequence[str],
        *,
        names: tuple[object, object] = ("src_lines", "tgt_lines"),
        first_line: int = 1,
        tgt: str | None = None,
        src: str | None = None,
    ) -> "list[PairScore]":
        """The log probability of each target line as a translation of its source line.

        Args:
            src_lines: one sentence each.
            tgt_lines: their translations.
            names: names of the two, for messages.
            first_line: the number of the first line, for messages.
            tgt: the language of the translations, as in `translate`.
            src: the language of the sources.

        Returns:
            For each pair log p(tgt, EOS | src), natural log, and those of its tokens, EOS last; none for blank lines.

        Raises:
            InputError: an argument is one string, a line has too many tokens, or the numbers of lines differ.
        """
        sides = [list(text_lines(str(n), x, first_line)) for n, x in zip(names, (src_lines, tgt_lines), strict=True)]
        sides[0] = list(self.encoder.tagged(sides[0], tgt, src))
        return self.score_ids(*self.encoder.pairs((sides[0], sides[1]), names, first_line))

    def score_ids(self, src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]]) -> "list[PairScore]":
        """Scores translations encoded by a `LineEncoder`; see `score`."""
        from softsearch.search.forced_decoding import PairScore

        pairs = list(zip(src, tgt, strict=True))
        whole = [pair for pair in pairs if all(pair)]
        scores = iter(self._without_alignments.score([one for one, _ in whole], [other for _, other in whole]))
        return [next(scores) if all(pair) else PairScore(0.0, ()) for pair in pairs]

    @cached_property
    def _term_encoder(self) -> "TermEncoder":
        from softsearch.runtime.term_encoder import TermEncoder

        form = partial(self.encoder.form, side=1) if self._is_plain else None
        return TermEncoder(self.system.tokenizers[1], self.system.step_fn.vocab_size, form)


def _together(
    inputs: int,
    average: Average,
    weights: Sequence[float] | None,
    fused: System | None,
    fused_weight: float,
    words: "Shortlist | None",
    members: Sequence[System],
) -> System:
    """One system of all members, see `Translator`."""
    is_alone = len(members) == 1 and (weights, fused, words) == (None, None, None)
    if is_alone and inputs == 1:
        return members[0]
    from softsearch.runtime.ensembles import combine, with_separate_inputs

    members = with_separate_inputs(members, inputs)
    return members[0] if is_alone else combine(members, average, weights, fused, fused_weight, words)


def _shortlist(bundle: Bundle, frequent: int) -> "Shortlist":
    from softsearch.runtime.shortlist_files import open_shortlist  # few translations use one

    return open_shortlist(bundle, frequent)


def _rescorers(scorers: Sequence[System], system: System) -> "list[RescoringModel]":
    """Systems that score the translations of another one."""
    if not scorers:
        return []
    from softsearch.runtime.ensembles import rescoring_model

    return [rescoring_model(scorer, system.tokenizers) for scorer in scorers]
