"""Initial states, a part of a recurrent decoder."""

import torch
from torch import Tensor, nn

from softsearch.models.cells import State
from softsearch.models.interface import EncoderDescription, EncoderOutput
from softsearch.models.layers import NormedLinear, xavier
from softsearch.ranges import Depth


class InitialState(nn.Module):
    """The initial state of a decoder: tanh(W x + b), with x taken from the encoder's output by subclasses.

    It is built with the encoder's description and the decoder's ``hidden_dim``. A custom one may be any module with
    ``num_states`` and ``forward``; in YAML it is ``initial_state: {_target_: mypackage.MyState, _partial_: true}``.
    """

    def __init__(self, input_dim: int, hidden_dim: int, *, num_states: int = 1, layer_norm: bool = False) -> None:
        super().__init__()
        self.num_states = num_states
        linear = NormedLinear if layer_norm else nn.Linear
        self.projection = xavier(linear(input_dim, num_states * hidden_dim), blocks=num_states)

    def forward(self, encoded: EncoderOutput) -> State:
        """The first ``num_states`` tensors of the cell's state, ``[batch, hidden_dim]`` each; others are zeros."""
        states = torch.tanh(self.projection(self.read(encoded))).to(self.projection.weight.dtype)
        return states.chunk(self.num_states, dim=-1)

    def read(self, encoded: EncoderOutput) -> Tensor:
        """x, ``[batch, input_dim]``."""
        raise NotImplementedError


class BackwardState(InitialState):
    """s_0 = tanh(W_s <-h_1) (Bahdanau et al. 2015, appendix A.2.2).

    <-h_1 is the final state of the encoder's last layer, or of its only direction if it is not bidirectional.

    Raises:
        ConfigError: the encoder has no final state.
    """

    def __init__(self, encoder: EncoderDescription, hidden_dim: int) -> None:
        super().__init__(encoder.top_layer().dim, hidden_dim)

    def read(self, encoded: EncoderOutput) -> Tensor:
        forward, backward = encoded.final[-1]
        return (forward if backward is None else backward)[0]


class MeanState(InitialState):
    """s_0 = tanh(W_init mean_j h_j) (Sennrich et al. 2017, arXiv:1703.04357, section 2).

    With ``num_states=2`` an LSTM's c starts from its own product (Xu et al. 2015, section 3.1.2). With
    ``layer_norm`` the product is normalised.
    """

    def __init__(
        self, encoder: EncoderDescription, hidden_dim: int, *, num_states: Depth = 1, layer_norm: bool = False
    ) -> None:
        super().__init__(encoder.output_dim, hidden_dim, num_states=num_states, layer_norm=layer_norm)

    def read(self, encoded: EncoderOutput) -> Tensor:
        return encoded.mean_state()
