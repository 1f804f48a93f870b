"""Limits of one request, and the checks of them; a request can neither choose files nor unbounded work."""

from collections.abc import Sequence
from dataclasses import dataclass

from softsearch.runtime.server.answers import RefusedError
from softsearch.runtime.server.schema import Options


@dataclass(frozen=True, kw_only=True)
class RequestLimits:
    """What one request may ask for.

    Args:
        body: bytes.
        sentences: of a request, sources and translations to score counted once.
        characters: of a sentence.
        beam: hypotheses of a sentence; also of ``n_best``.
        length: target tokens that a request may set as the most or fewest; without, the bundle's own limit holds.
    """

    body: int = 1_000_000
    sentences: int = 128
    characters: int = 2_000
    beam: int = 20
    length: int = 500

    def check_texts(self, field: str, texts: Sequence[str]) -> None:
        """Refuses too many sentences, or a sentence that is too long.

        Raises:
            RefusedError: with status 422.
        """
        if len(texts) > self.sentences:
            raise RefusedError(
                422, f"{field} has {len(texts)} sentences, expected at most {self.sentences}; send several requests"
            )
        for index, text in enumerate(texts):
            if len(text) > self.characters:
                raise RefusedError(
                    422,
                    f"{field}[{index}] has {len(text)} characters, expected at most {self.characters}; "
                    "send one sentence at a time",
                )

    def check_options(self, options: Options, texts: Sequence[str]) -> None:
        """Refuses numbers beyond this server's limits, and very large answers.

        Raises:
            RefusedError: with status 422.
        """
        allowed = {"beam": self.beam, "n_best": self.beam, "max_length": self.length, "min_length": self.length}
        for name, most in allowed.items():
            value = getattr(options, name)
            if value is not None and value > most:
                raise RefusedError(422, f"{name} is {value}, expected at most {most} on this server; lower it")
        # Each translation comes with the pieces of both sides; a matrix grows with the square of a sentence's length.
        n_best, length = options.n_best or 1, max(options.max_length or 0, options.min_length or 0)
        sizes = {"translations": (n_best * sum(max(len(text), length) for text in texts), self.sentences)}
        if options.alignments:
            sizes["alignments"] = n_best * sum(map(len, texts)), 5
        for what, (size, most) in sizes.items():
            if size > most * self.characters:
                raise RefusedError(
                    422,
                    f"{what} of {size} characters, counted n_best times, expected at most {most * self.characters}; "
                    "send fewer sentences or lower n_best",
                )
