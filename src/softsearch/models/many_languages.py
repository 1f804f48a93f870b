"""A Transformer that translates between many languages: M2M-100 (Fan et al. 2021, arXiv:2010.11125, section 2).

The encoder reads the source and its language; a translation begins with the token of its language. Here a source line
begins with two tags, ``<2deu_Latn> <from:eng_Latn> A house``. The encoder does not read the first one: it makes the
decoder write that language first, with probability 1, as ``forced_bos_token_id`` does in ``transformers``.

The vocabulary ends with three groups of ids, each with the languages in the same order: the tokens that translations
begin with, the tags ``<2...>`` and the tags ``<from:...>``.
"""

from collections.abc import Collection
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from softsearch.models.interface import DecoderState, EncoderOutput, StepOutput
from softsearch.models.transformer import TransformerDecoder, TransformerEncoder
from softsearch.ranges import Size
from softsearch.text.vocabulary import EOS, PAD


class ManyLanguagesEncoder(TransformerEncoder):
    """A ``TransformerEncoder`` that does not see the target's tag.

    Args:
        num_languages: languages at the end of the vocabulary.
        source_language: position of the source's language: ``first``, or ``last`` (after EOS), as in the first release
            of NLLB-200 (arXiv:2207.04672).
        options: those of ``TransformerEncoder``.
    """

    first_position: ClassVar[int] = 2  # of sinusoids, as fairseq counts them

    def __init__(
        self, *, num_languages: Size, source_language: Literal["first", "last"] = "first", **options: Any
    ) -> None:
        super().__init__(**options)
        self.source_language = source_language
        self.num_languages, self.first_tag = num_languages, self.embedding.num_embeddings - 2 * num_languages
        self.description = self.description._replace(hides_tokens=True)

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> EncoderOutput:
        self.positions.check_length(src_tokens.shape[1], "source sentence")
        column = torch.arange(src_tokens.shape[1], device=src_tokens.device)
        tag = src_tokens - self.first_tag  # a target's if below num_languages, else a source's
        mask = src_mask & ~((column == 0) & (tag >= 0) & (tag < self.num_languages))
        position = mask.cumsum(1) - 1  # [batch, src_len]
        if self.source_language == "last":
            is_language = (position == 0) & (tag >= self.num_languages) & mask
            last = mask.sum(1, keepdim=True) - 1
            behind = is_language.long().cumsum(1)  # 1 from the language on
            position = torch.where(is_language, last, position - behind)
        return self.encode(src_tokens, mask, position.clamp(min=0) + self.first_position)


class ManyLanguagesDecoder(TransformerDecoder):
    """A ``TransformerDecoder`` whose translations begin with the language that the source's tag asks for.

    BOS is read as EOS. Training targets do not contain the language: it is read before their first token, and not
    predicted. Sources without a tag ask for the first language.
    """

    takes_shortlist = False
    first_position: ClassVar[int] = ManyLanguagesEncoder.first_position

    def __init__(self, *, num_languages: Size, **options: Any) -> None:
        super().__init__(**options)
        self.num_languages, self.first_language = num_languages, self.embedding.num_embeddings - 3 * num_languages

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """The state of a ``TransformerDecoder``; the last memory is the language to write, ``[sentences]``."""
        assert encoded.src_tokens is not None
        tag = encoded.src_tokens[:, 0] - self.num_languages
        language = torch.where(self._is_language(tag), tag, self.first_language)
        state = super().init_state(encoded)
        memory = state.memory
        return state._replace(memory=memory._replace(projected=(*memory.projected, language)))

    def embed(self, tokens: Tensor, position: Tensor) -> Tensor:
        x = self.embedding(tokens) * self.positions.scale
        encodings = self.positions.encodings(position + self.first_position, x.shape[-1]).to(x.dtype)
        return x + encodings * (tokens != PAD)[..., None].to(x.dtype)  # fairseq adds none to PAD

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        plain, language = _split(state)
        is_first = state.position == 0  # [rows]
        output = super().step(torch.where(is_first, EOS, tokens), plain)
        by_row = language[:, None].expand(-1, tokens.shape[0] // language.shape[0]).reshape(-1, 1)
        others = torch.arange(output.logits.shape[-1], device=tokens.device) != by_row  # [rows, vocab]
        forced = torch.where(others, -torch.inf, 0.0).to(output.logits.dtype)
        logits = torch.where(is_first[:, None], forced, output.logits)
        return StepOutput(logits, output.alignments, output.state._replace(memory=state.memory))

    def all_positions(
        self, tgt_tokens: Tensor, state: DecoderState, aligning: Collection[int] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        plain, language = _split(state)
        behind = tgt_tokens[:, 1:]
        is_given = self._is_language(behind[:, :1]).any(1, keepdim=True)  # targets that a search has written
        begun = torch.cat((language[:, None], behind), dim=1)
        written = torch.cat((behind, torch.full_like(language, PAD)[:, None]), dim=1)
        tokens = torch.cat((torch.full_like(language, EOS)[:, None], torch.where(is_given, written, begun)), dim=1)
        x, weights = super().all_positions(tokens, plain, aligning)

        def asked(values: Tensor) -> Tensor:
            given = is_given.view(-1, *[1] * (values.dim() - 1))
            return torch.where(given, values[..., :-1, :], values[..., 1:, :])

        return asked(x), list(map(asked, weights))

    def _is_language(self, tokens: Tensor) -> Tensor:
        return (tokens >= self.first_language) & (tokens < self.first_language + self.num_languages)


def _split(state: DecoderState) -> tuple[DecoderState, Tensor]:
    """The state of a ``TransformerDecoder``, and the language."""
    *projected, language = state.memory.projected
    return state._replace(memory=state.memory._replace(projected=tuple(projected))), language
