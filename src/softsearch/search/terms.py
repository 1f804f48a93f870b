"""Terms that a translation must contain, found in its text, whichever tokens spell it.

An Aho-Corasick automaton (1975) reads hypotheses character by character, so every segmentation of a term counts. A word
edge is a separate symbol between a letter and anything else.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_EDGE = "\0"
# Words of these scripts are not separated by spaces, so a term may begin or end anywhere in them.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "IDEOGRAPHIC", "BOPOMOFO")


class Term(NamedTuple):
    """A term of a sentence, whose translation must contain one of the alternatives ``times`` times, or more.

    With a bonus the term is only preferred: each occurrence ranks a translation higher by this many nats.
    """

    alternatives: tuple[str, ...]
    times: int = 1
    whole_words: bool = True  # not inside a longer word
    source: str = ""  # the term in the sentence's language
    bonus: float | None = None
    exact: bool = False  # and no more; for text without word edges at its ends, such as a symbol


class Spelling:
    """The text of every token, in arrays that hold one character of all tokens each.

    Args:
        texts: the text of each token by id, U+0020 included; "" for special tokens.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        lengths = np.array([len(text) for text in texts])
        self.texts, self.vocab_size, self._known = texts, len(texts), frozenset(texts) - {""}
        self.order = np.argsort(-lengths, kind="stable")  # shorter tokens last
        self.characters = sorted(set().union(*texts))
        codes = {character: code for code, character in enumerate(self.characters)}
        self.columns = [  # codes of the first, the second ... character of the tokens that have one
            np.array([codes[texts[token][place]] for token in self.order[: (lengths > place).sum()]])
            for place in range(lengths.max(initial=0))
        ]

    def fewest_tokens(self, text: str) -> int:
        """The minimum number of tokens that write a text, with or without spaces around it; at most its length."""
        return min(self._fewest(each) for each in (text, f" {text}", f"{text} "))

    def _fewest(self, text: str) -> int:
        fewest = [0] + [len(text)] * len(text)  # fewest[i] tokens write the first i characters
        for end in range(1, len(text) + 1):
            for begin in range(max(0, end - len(self.columns)), end):
                if text[begin:end] in self._known:
                    fewest[end] = min(fewest[end], fewest[begin] + 1)
        return fewest[-1]


class Terms:
    """The required terms of one sentence.

    A term that is part of another term's translation is needed in addition to it.
    """

    def __init__(self, required: Sequence[Term], spelling: Spelling) -> None:
        self.required, self._spelling = tuple(required), spelling
        self.must = np.array([term.bonus is None for term in required])  # the others are preferred only
        self.bonus = np.array([term.bonus or 0.0 for term in required])
        self.counts = self.must | (self.bonus > 0)  # a bonus of 0 prefers nothing
        self.exact = np.array([term.exact for term in required])
        self.needed = np.array([term.times for term in required]) + self._contained()

    @cached_property
    def automaton(self) -> "TermAutomaton":
        """The automaton that reads hypotheses token by token."""
        return TermAutomaton(self.required, self.needed, self._spelling)

    def steps(self, watched: NDArray[np.bool_]) -> int:
        """The number of steps that write the watched terms that must be written; a word edge is one step."""
        return int(self.needed[self.must & watched].sum()) * self.automaton.term_steps

    def missing_in(self, tokens: Sequence[int]) -> NDArray[np.int64]:
        """How often each term is still missing in a translation, given as tokens without EOS, ``[terms]``."""
        return np.maximum(self.needed - self._counts(tokens), 0)

    def unmet_in(self, tokens: Sequence[int]) -> NDArray[np.bool_]:
        """Which terms are missing in a translation, or too often in it, ``[terms]``."""
        counts = self._counts(tokens)
        return (counts < self.needed) | self.exact & (counts > self.needed)

    def bonus_of(self, tokens: Sequence[int]) -> float:
        """The nats by which a translation, given as tokens without EOS, ranks higher."""
        return float((self.needed - self.missing_in(tokens)) @ self.bonus)

    def _counts(self, tokens: Sequence[int]) -> NDArray[np.int64]:
        text = "".join(self._spelling.texts[token] for token in tokens)
        return np.array([count_in(text, term) for term in self.required])

    def _contained(self) -> NDArray[np.int64]:
        """How often each term occurs inside the other required terms."""
        more = np.zeros(len(self.required), dtype=np.int64)
        for number, term in enumerate(self.required):
            for other in (*self.required[:number], *self.required[number + 1 :]):
                more[number] += other.times * min(count_in(text, term) for text in other.alternatives)
        return more


class TermAutomaton:
    """Reads hypotheses and finds the terms of one sentence.

    A place in the automaton is an int, 0 at first: twice a node, plus one after a character that joins its neighbours.
    A hypothesis is described by its place and how often it contains each term, ``counts [terms]``, at most ``needed``.
    """

    def __init__(self, required: Sequence[Term], needed: NDArray[np.int64], spelling: Spelling) -> None:
        self.needed, self._spelling = needed, spelling
        self._exact = np.array([term.exact for term in required])
        self.term_steps = 1 + max(spelling.fewest_tokens(text) for term in required for text in term.alternatives)
        patterns = [(number, _symbols(text, term)) for number, term in enumerate(required) for text in shortest(term)]
        symbols = {symbol: code for code, symbol in enumerate(dict.fromkeys("".join(p for _, p in patterns)))}
        follow, found, shares = _build(patterns, symbols, len(required))
        self._share = np.repeat(shares, 2, axis=0)  # [places, terms]
        characters = [symbol for symbol in symbols if symbol != _EDGE]
        classes = {character: number for number, character in enumerate(characters)}
        joining = np.array([*map(joins, characters), True, False])  # the last two classes are all other characters
        codes = np.array([*(symbols[character] for character in characters), len(symbols), len(symbols)])
        of_characters = np.array([
            classes.get(each, len(classes) + (not joins(each))) for each in spelling.characters
        ], dtype=np.int32)  # fmt: skip
        self._columns = [of_characters[column] for column in spelling.columns]
        nodes, bits = np.divmod(np.arange(2 * len(follow)), 2)
        edges = follow[:, symbols.get(_EDGE, -1)][nodes]  # the nodes after a word edge
        is_edge = bits[:, None] != joining
        after = follow[np.where(is_edge, edges[:, None], nodes[:, None]), codes]
        self._next = (2 * after + joining).astype(np.int32)  # [places, classes]
        self._hits = (found[edges][:, None] * is_edge[:, :, None] + found[after]).astype(np.int8)  # and terms
        self._at_end = found[edges] * bits[:, None]
        self._any_hit = self._hits.any(axis=2)
        self._reached: dict[int, tuple[NDArray[np.int32], NDArray[np.int8] | None]] = {}
        self._advancing: dict[tuple[int, bytes], NDArray[np.int64]] = {}
        self._exceeding: dict[tuple[int, bytes], NDArray[np.int64]] = {}

    def after(self, place: int) -> tuple[NDArray[np.int32], NDArray[np.int8] | None]:
        """The place after each token ``[vocab]``, and the terms it completed, ``[vocab, terms]``, or None if none."""
        if place not in self._reached:
            size, terms, start = self._spelling.vocab_size, len(self.needed), place & 1
            places, counts = np.full(size, place, dtype=np.int32), np.zeros((size, terms), dtype=np.int8)
            chosen = np.arange(size)
            if place > 1 and self._columns:  # tokens whose first character continues no term go on as from 0
                other, completed = self.after(start)
                counts = counts if completed is None else completed.copy()
                differs = self._next[place] != self._next[start]
                differs |= (self._hits[place] != self._hits[start]).any(axis=1)
                chosen = np.flatnonzero(differs[self._columns[0]])
                places = other.copy()
                ids = self._spelling.order[chosen]
                places[ids], counts[ids] = place, 0
                places[self._spelling.order[len(self._columns[0]) :]] = place  # tokens without text
            self._walk(chosen, places, counts)
            self._reached[place] = places, counts if counts.any() else None
        return self._reached[place]

    def _walk(self, chosen: NDArray[np.int64], places: NDArray[np.int32], counts: NDArray[np.int8]) -> None:
        """Reads the tokens at these indices of the order, and updates their places and counts, which are by id."""
        ids = self._spelling.order[chosen]
        here = places[ids]
        for column in self._columns:
            left = int(np.searchsorted(chosen, len(column)))
            if not left:
                break
            classes = column[chosen[:left]]
            hit = self._any_hit[here[:left], classes]
            if hit.any():
                counts[ids[:left][hit]] += self._hits[here[:left][hit], classes[hit]]
            here[:left] = self._next[here[:left], classes]
        places[ids] = here

    def missing(self, places: NDArray[np.int32], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """How often each term would be missing if the hypotheses ended now, ``[rows, terms]``."""
        return np.maximum(self.needed - counts - self._at_end[places], 0)

    def shares(self, places: NDArray[np.int32], counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of each needed term that is written, below 1, ``[rows, terms]``."""
        return np.where(counts < self.needed, self._share[places], 0.0)

    def exceeding(self, place: int, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The tokens after which an exact term is there too often."""
        left = (self.needed - counts)[self._exact]
        key = place, left.tobytes()
        if key not in self._exceeding:
            _, completed = self.after(place)
            more = np.zeros((0, 0)) if completed is None else completed[:, self._exact]
            self._exceeding[key] = np.flatnonzero((more > left).any(axis=1)) if more.size else np.zeros(0, np.int64)
        return self._exceeding[key]

    def advancing(self, place: int, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The tokens that write more of a term that is still needed."""
        needed = counts < self.needed
        key = place, needed.tobytes()
        if key not in self._advancing:
            places, completed = self.after(place)
            share = self._share * needed
            more = share.max(axis=1, initial=0.0)[places] > share[place].max(initial=0.0)
            if completed is not None:
                more |= (completed[:, needed] > 0).any(axis=1)
            self._advancing[key] = np.flatnonzero(more)
        return self._advancing[key]


def _build(
    patterns: Sequence[tuple[int, str]], symbols: Mapping[str, int], terms: int
) -> tuple[NDArray[np.int64], NDArray[np.int8], NDArray[np.float64]]:
    """The nodes after each node and symbol (the last is any other symbol); the terms that end in each; their shares.

    ``patterns`` holds the symbols of the alternatives, with the indices of their terms.
    """
    children: list[dict[int, int]] = [{}]
    shares: list[dict[int, float]] = [{}]  # for each node: how much of which terms is written
    ends: list[set[int]] = [set()]
    for term, pattern in patterns:
        node, written, length = 0, 0, len(pattern.replace(_EDGE, ""))
        for place, symbol in enumerate(pattern, 1):
            node = children[node].setdefault(symbols[symbol], len(children))
            if node == len(children):
                children.append({})
                shares.append({})
                ends.append(set())
            written += symbol != _EDGE
            share = written / (length + 1) if place < len(pattern) else 0.0
            shares[node][term] = max(shares[node].get(term, 0.0), share)
        ends[node].add(term)
    follow = np.zeros((len(children), len(symbols) + 1), dtype=np.int64)
    found, share_of = np.zeros((len(children), terms), dtype=np.int8), np.zeros((len(children), terms))
    back, queue = [0] * len(children), [0]
    for node in queue:
        found[node, list(ends[node])] = 1
        for term, share in shares[node].items():
            share_of[node, term] = share
        if node:  # a suffix of this node's text ends or begins terms here too
            found[node] |= found[back[node]]
            share_of[node] = np.maximum(share_of[node], share_of[back[node]])
            follow[node] = follow[back[node]]
        for code, child in children[node].items():
            back[child] = int(follow[node, code]) if node else 0
            follow[node, code] = child
            queue.append(child)
    return follow, found, share_of


def shortest(term: Term) -> list[str]:
    """The alternatives, without those that contain another one."""
    every = {_symbols(text, term): text for text in term.alternatives}
    return [text for one, text in sorted(every.items()) if not any(other in one for other in every.keys() - {one})]


def count_in(text: str, term: Term) -> int:
    """The number of places in a text where an alternative of a term ends."""
    ends = set()
    for each in shortest(term) if len(term.alternatives) > 1 else term.alternatives:
        begin = text.find(each)
        while begin >= 0:
            end = begin + len(each)
            inside = (begin and joins(text[begin - 1]) and joins(each[0])) or (
                end < len(text) and joins(each[-1]) and joins(text[end])
            )
            if not (term.whole_words and inside):
                ends.add(end)
            begin = text.find(each, begin + 1)
    return len(ends)


@lru_cache(10_000)
def joins(character: str) -> bool:
    """Tells whether a character forms one word with a neighbour that also does."""
    if not (character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")):
        return False
    return not unicodedata.name(character, "").startswith(_UNSPACED)


def _symbols(text: str, term: Term) -> str:
    """The characters of an alternative and its word edges; those at its ends only for whole words."""
    inner = "".join(
        character if joins(character) == joins(previous) else _EDGE + character
        for previous, character in zip(text[0] + text, text, strict=False)
    )
    return _EDGE * (term.whole_words and joins(text[0])) + inner + _EDGE * (term.whole_words and joins(text[-1]))
