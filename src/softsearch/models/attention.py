"""Attention mechanisms. Beams lie on the query axis, so that a sentence's memory is never copied per hypothesis."""

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.models.interface import Memory
from softsearch.models.layers import NormedLinear, random_vector, xavier
from softsearch.ranges import Size


def masked_softmax(energies: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis where ``mask`` is True, 0 elsewhere; each row has at least one True."""
    if not energies.requires_grad or energies.device.type != "cpu" or torch.compiler.is_compiling():
        return energies.masked_fill(~mask, torch.finfo(energies.dtype).min).softmax(-1)
    # A sum, because masked_fill takes six times as long on a CPU, and so does a softmax that autocast converts.
    wide = energies.to(torch.promote_types(energies.dtype, torch.float32))
    wide = wide + torch.where(mask, 0.0, torch.finfo(torch.float32).min)
    weights = _SoftmaxOfShortRows.apply(wide) if wide.shape[-1] < 16 and wide.shape[-2] > 1 else wide.softmax(-1)
    return weights if torch.is_autocast_enabled("cpu") else weights.to(energies.dtype)


class _SoftmaxOfShortRows(torch.autograd.Function):
    """Softmax at 2 ns per number on a CPU, where PyTorch's takes 15 in rows shorter than 16 (1 in longer rows)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = (x - x.amax(-1, keepdim=True)).clamp_(min=-87).exp_()  # exp is slow where its results are denormal
        y = functional.threshold(y, 1e-37, 0, inplace=True)
        y /= y.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, d_y: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        d_x = d_y * y
        return d_x.addcmul_(y, d_x.sum(-1, keepdim=True), value=-1)


class AttentionOutput(NamedTuple):
    """The result of attention for some queries."""

    weights: Tensor  # [sentences, queries, positions], weights of the annotations in the context; 0 at padding
    alignments: Tensor  # [sentences, queries, positions], a distribution over the source: often the weights
    state: tuple[Tensor, ...] = ()  # passed to the next step, axis 0 = rows


class Attention(nn.Module):
    """Attention, a part of a decoder: the context is sum_j alpha_ij h_j with the weights alpha_i.

    It is built with the widths of the decoder's queries and of the annotations. A custom attention defines
    ``energies``, and ``project`` if it multiplies the annotations by weights; in YAML it is
    ``attention: {_target_: mypackage.MyAttention, _partial_: true}`` with its options. If it is more than a
    softmax of energies, it overrides ``forward``. If it reads its own previous result, it sets ``num_states`` and
    defines ``start``.
    """

    num_states: int = 0  # tensors passed from one step to the next

    def project(self, states: Tensor) -> tuple[Tensor, ...]:
        """Products with the annotations ``[sentences, positions, memory_dim]``, computed once per sentence."""
        return ()

    def start(self, mask: Tensor) -> tuple[Tensor, ...]:
        """The state that the first step reads, axis 0 = sentences, given the ``mask`` of the annotations."""
        return ()

    def energies(self, query: Tensor, memory: Memory, state: tuple[Tensor, ...]) -> Tensor:
        """The energies e_ij ``[sentences, queries, positions]``; the arguments are those of ``forward``."""
        raise NotImplementedError

    def forward(
        self, query: Tensor, memory: Memory, position: Tensor, state: tuple[Tensor, ...] = ()
    ) -> AttentionOutput:
        """Attends from some queries of each sentence: its beams, or all steps at once.

        Args:
            query: ``[sentences, queries, query_dim]``.
            memory: the annotations; ``projected`` begins with the result of ``project``.
            position: the step of each query, ``[sentences, queries]`` from 0.
            state: the tensors that the previous step returned, each ``[sentences * queries, ...]``.
        """
        weights = masked_softmax(self.energies(query, memory, state), memory.mask[:, None])
        return AttentionOutput(weights, weights)


class AdditiveAttention(Attention):
    """Bahdanau et al. 2015, appendix A.1.2: e_ij = v_a' tanh(W_a s_{i-1} + U_a h_j), alpha_i = softmax(e_i).

    The hidden layer has ``dim`` units. With ``layer_norm`` both products are normalised: LN(W_a s_{i-1}) +
    LN(U_a h_j + b).
    """

    reads_content: ClassVar[bool] = True

    def __init__(self, query_dim: int, memory_dim: int, *, dim: Size, layer_norm: bool = False) -> None:
        super().__init__()
        linear = NormedLinear if layer_norm else nn.Linear
        self.query_projection = linear(query_dim, dim, bias=False)  # W_a
        if self.reads_content:
            self.memory_projection = linear(memory_dim, dim)  # U_a, b
        for layer in self.content_layers():
            xavier(layer)
        self.energy_weight = random_vector(dim)  # v_a

    def content_layers(self) -> list[nn.Linear]:
        """W_a, and U_a if there is one."""
        return [self.query_projection, *([self.memory_projection] if self.reads_content else [])]

    def project(self, states: Tensor) -> tuple[Tensor, ...]:
        """U_a h_j of all annotations, ``[sentences, positions, dim]``."""
        return (self.memory_projection(states),) if self.reads_content else ()

    def energies(self, query: Tensor, memory: Memory, state: tuple[Tensor, ...]) -> Tensor:
        hidden = torch.tanh(self.products(query, memory, state))
        # ONNX Runtime takes six times as long for a product of a four-dimensional tensor with a vector.
        return (hidden.flatten(0, 2) @ self.energy_weight[:, None]).view(hidden.shape[:3])

    def products(self, query: Tensor, memory: Memory, state: tuple[Tensor, ...]) -> Tensor:
        """The sum inside the tanh, ``[sentences, queries, positions, dim]``."""
        total: Tensor = self.query_projection(query)[:, :, None]
        return total + memory.projected[0][:, None] if self.reads_content else total


class HybridAttention(AdditiveAttention):
    """An ``AdditiveAttention`` that also reads the previous step's alignments (Chorowski et al. 2015, 2.1).

    e_ij = v_a' tanh(W_a s_{i-1} + U_a h_j + U f_ij + b) with the convolutional features of section 2.2, f_i = F *
    alpha_{i-1} (arXiv:1506.07503). alpha_0 has all its mass on the first position; beyond both ends there are zeros.
    Each filter reads ``half_width`` positions on each side of j (in the paper, for speech: 10 filters, 100 positions).
    """

    num_states = 1

    def __init__(
        self,
        query_dim: int,
        memory_dim: int,
        *,
        dim: Size,
        filters: Size = 10,
        half_width: Size = 5,
        layer_norm: bool = False,
    ) -> None:
        super().__init__(query_dim, memory_dim, dim=dim, layer_norm=layer_norm)
        self.location_filters = nn.Conv1d(1, filters, 2 * half_width + 1, padding=half_width, bias=False)  # F
        self.location_projection = xavier(nn.Linear(filters, dim, bias=not self.reads_content))  # U

    def start(self, mask: Tensor) -> tuple[Tensor, ...]:
        """alpha_0, ``[sentences, positions]``."""
        first = torch.arange(mask.shape[1], device=mask.device) == 0
        return (first.to(self.energy_weight.dtype).expand(mask.shape),)

    def forward(
        self, query: Tensor, memory: Memory, position: Tensor, state: tuple[Tensor, ...] = ()
    ) -> AttentionOutput:
        """Attends as the base class does; the next step's state is the alignments."""
        attended = super().forward(query, memory, position, state)
        return attended._replace(state=(attended.weights.flatten(0, 1).to(state[0].dtype),))

    def products(self, query: Tensor, memory: Memory, state: tuple[Tensor, ...]) -> Tensor:
        features = self.location_filters(state[0][:, None]).transpose(1, 2)  # [rows, positions, filters]
        location_term = self.location_projection(features).unflatten(0, query.shape[:2])
        return super().products(query, memory, state) + location_term


class LocationAttention(HybridAttention):
    """A ``HybridAttention`` that does not read the annotations: e_ij = v_a' tanh(W_a s_{i-1} + U f_ij + b).

    Attend(s_{i-1}, alpha_{i-1}) of Chorowski et al. 2015, section 2.1, and of Luong 2016, "Neural machine translation".
    """

    reads_content = False


class GatedAttention(AdditiveAttention):
    """An ``AdditiveAttention`` whose weights are beta_i alpha_i, with a gate beta_i = sigmoid(f_beta(s_{i-1})).

    Xu et al. 2015 (arXiv:1502.03044), section 4.2.1, without its penalty on annotations that get little attention in
    total.
    """

    def __init__(self, query_dim: int, memory_dim: int, *, dim: Size) -> None:
        super().__init__(query_dim, memory_dim, dim=dim)
        self.gate_projection = xavier(nn.Linear(query_dim, 1))  # f_beta

    def forward(
        self, query: Tensor, memory: Memory, position: Tensor, state: tuple[Tensor, ...] = ()
    ) -> AttentionOutput:
        attended = super().forward(query, memory, position, state)
        return attended._replace(weights=torch.sigmoid(self.gate_projection(query)) * attended.weights)
