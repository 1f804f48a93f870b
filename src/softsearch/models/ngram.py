"""N-gram language model, smoothed by interpolated modified Kneser-Ney and counted instead of trained."""

from typing import Annotated, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.errors import ConfigError
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import CountedDecoder, DecoderState, EncoderDescription, EncoderOutput, StepOutput
from softsearch.models.kneser_ney import NGrams, Sentences, kneser_ney
from softsearch.models.output_layers import OutputLayer
from softsearch.ranges import Range


class NGramTable(nn.Module):
    """The n-grams of one order by context and word, as the nodes of a trie: the number of an n-gram is its index.

    An extra n-gram, the last, stands for all that do not occur: as a context it has no successors, and p is that of the
    order below. Before counting it is the only one.
    """

    offsets: Tensor  # [contexts + 1] int32: the n-grams of context c are those from offsets[c] to offsets[c + 1]
    words: Tensor  # [ngrams] int32, rising within a context
    discounted: Tensor  # [ngrams] u(w | h)
    backoffs: Tensor  # [contexts] gamma(h)

    def __init__(self, num_contexts: int, vocab_size: int) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.register_buffer("offsets", torch.zeros(num_contexts + 1, dtype=torch.int32))
        self.register_buffer("words", torch.zeros(1, dtype=torch.int32))
        self.register_buffer("discounted", torch.zeros(1))
        self.register_buffer("backoffs", torch.ones(num_contexts))

    def fill(self, ngrams: NGrams) -> None:
        """Copies the n-grams of one order into the table."""
        # The last context has no n-grams.
        lengths = torch.bincount(ngrams.contexts, minlength=ngrams.backoffs.shape[0] + 1)
        self.offsets = functional.pad(lengths.cumsum(0), (1, 0)).int()
        self.words = functional.pad(ngrams.words, (0, 1)).int()
        self.discounted = functional.pad(ngrams.discounted, (0, 1)).float()
        self.backoffs = functional.pad(ngrams.backoffs, (0, 1), value=1).float()

    def problem(self, num_contexts: int) -> str | None:
        """Describes what is wrong with the table, such as a range beyond its end; None if it can be used."""
        sizes = self.offsets.numel() - 1, self.backoffs.numel(), self.discounted.numel()
        if sizes != (num_contexts, num_contexts, self.words.numel()):
            return f"has {sizes} offsets, backoffs and n-grams for {num_contexts} contexts and {self.words.numel()}"
        lengths = self.offsets.diff()
        ends = self.offsets[0] == 0 and self.offsets.min() == 0 and self.offsets[-1] < self.words.numel()
        if not ends or lengths.min() < 0 or lengths.max() > self.vocab_size:
            return "has offsets that are not ranges of its n-grams"
        if self.words.min() < 0 or self.words.max() >= self.vocab_size:
            return f"has words outside of the vocabulary of {self.vocab_size}"
        return None

    def find(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        """Finds the numbers of the n-grams (context, word) by binary search; both arrays have the same shape."""
        first, end = self._range(contexts)
        place, last = first - 1, self.words.shape[0] - 1
        for bit in reversed(range(self.vocab_size.bit_length())):
            probe = place + 2**bit
            smaller = (probe < end) & (self.words[probe.clamp(max=last)] <= tokens)
            place = torch.where(smaller, probe, place)
        found = (place >= first) & (self.words[place.clamp(min=0)] == tokens)
        return torch.where(found, place, last)

    def interpolate(self, lower: Tensor, contexts: Tensor) -> Tensor:
        """Adds an order, p(w | h) = u(w | h) + gamma(h) p(w | h'), to ``[rows, vocab]`` of the orders below."""
        first, end = self._range(contexts)
        longest = (end - first).max().clamp(min=1).item()
        place = first[:, None] + torch.arange(longest, device=first.device)  # [rows, longest]
        inside = place < end[:, None]
        place = place.clamp(max=self.words.shape[0] - 1)
        higher = torch.where(inside, self.discounted[place], 0)
        # Where nothing is added, it does not matter to which word.
        return (self.backoffs[contexts][:, None] * lower).scatter_add(1, self.words[place].long(), higher)

    def _range(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        return self.offsets[contexts].long(), self.offsets[contexts + 1].long()


class NGramTables(OutputLayer):
    """Turns the numbers of contexts into log probabilities.

    Features are int64, ``[..., order - 1]``: the numbers of the contexts of 1, 2, ..., n - 1 words. A context of one
    word has the word's id as its number.
    """

    unigrams: Tensor  # [vocab] p(w)

    def __init__(self, order: int, vocab_size: int) -> None:
        super().__init__()
        self.out_features = vocab_size
        self.register_buffer("unigrams", torch.full((vocab_size,), 1 / vocab_size))
        sizes = [vocab_size + 1] + [1] * (order - 2)  # an extra context stands for those that do not occur
        self.tables = nn.ModuleList(NGramTable(size, vocab_size) for size in sizes)

    def forward(self, features: Tensor) -> Tensor:
        contexts = features.flatten(0, -2)
        p = self.unigrams.expand(contexts.shape[0], -1)
        for table, numbers in zip(self.levels(), contexts.unbind(1), strict=True):
            p = table.interpolate(p, numbers)
        return p.log().unflatten(0, features.shape[:-1])

    def levels(self) -> list[NGramTable]:
        """The tables of the orders 2 to n."""
        return cast(list[NGramTable], list(self.tables))


class NGramDecoder(CountedDecoder):
    """Predicts a token from the ``order - 1`` tokens before it, by counts; it reads no source.

    p(w | h) is the interpolated modified Kneser-Ney estimate of ``softsearch.models.kneser_ney`` over the pieces of
    the target vocabulary. Only the vocabulary's size is used from the embeddings.

    The cache holds the numbers of the contexts of 1, ..., n - 2 words that end with the last token read. A context of k
    words is a successor of the one of k - 1 words before it, so each token costs one look-up for each order. A sentence
    begins with one BOS, before which there is no context.

    Raises:
        ConfigError: the encoder reads the source, or an output layer is set.
    """

    output_projection: NGramTables

    def __init__(
        self, *, embeddings: Embeddings, encoder: EncoderDescription, order: Annotated[int, Range(3, 16)]
    ) -> None:
        super().__init__(embeddings, dropout=0.0)
        encoder.check_unread("NGramDecoder")
        if embeddings.output_layer is not None:
            raise ConfigError(
                "model.embeddings.output_layer is set, but NGramDecoder has counts in place of an output layer; set "
                "loss=cross_entropy, or choose another decoder"
            )
        self.output_projection = NGramTables(order, self.embedding.num_embeddings)
        self.embedding = None  # type: ignore[assignment]  # tokens are read as ids

    def count_ngrams(self, sentences: Sentences) -> None:
        output = self.output_projection
        tables = output.levels()
        unigrams, levels = kneser_ney(sentences, order=len(tables) + 1, vocab_size=output.out_features)
        output.unigrams = unigrams.float()
        for table, ngrams in zip(tables, levels, strict=True):
            table.fill(ngrams)

    def problem(self) -> str | None:
        output = self.output_projection
        num_contexts = output.unigrams.numel() + 1
        if num_contexts != output.out_features + 1:
            return f"has {num_contexts - 1} words, expected {output.out_features}"
        for order, table in enumerate(output.levels(), start=2):
            if found := table.problem(num_contexts):
                return f"the table of order {order} {found}"
            num_contexts = table.words.numel()
        return None

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """The empty context: the last number of each length."""
        output = self.output_projection
        numbers = [output.out_features, *(table.words.shape[0] - 1 for table in output.levels()[:-2])]
        nothing = torch.tensor(numbers, device=encoded.mask.device)
        return DecoderState.initial(encoded, (nothing.expand(encoded.mask.shape[0], -1),))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """Looks up all positions at once, from the shortest contexts to the longest."""
        contexts = [tgt_tokens]
        for table, first in zip(self.output_projection.levels(), state.cache[0].split(1, dim=1), strict=False):
            previous = torch.cat((first, contexts[-1][:, :-1]), dim=1)
            contexts.append(table.find(previous, tgt_tokens))
        return torch.stack(contexts, dim=-1)

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        contexts = [tokens]
        for table, previous in zip(self.output_projection.levels(), state.cache[0].unbind(1), strict=False):
            contexts.append(table.find(previous, tokens))
        features = torch.stack(contexts, dim=-1)
        return StepOutput(self.output_projection(features), None, state.next((features[:, :-1],)))
