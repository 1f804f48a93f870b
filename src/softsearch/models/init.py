"""Parameter initialisation as papers describe it: functions for ``model.init``."""

from collections.abc import Callable, Mapping

from torch import Tensor, nn

from softsearch.models.attention import AdditiveAttention
from softsearch.models.cells import Cell, GRUCell
from softsearch.models.initial_state import MeanState
from softsearch.ranges import NotNegative


def uniform(model: nn.Module, *, scale: NotNegative) -> None:
    """Uniform in [-scale, scale] (Sutskever et al. 2014, Luong et al. 2015); norms stay unchanged."""
    for _, parameter in _parameters(model):
        nn.init.uniform_(parameter, -scale, scale)


def gaussian(model: nn.Module, *, std: NotNegative, attention_std: NotNegative) -> None:
    """Bahdanau et al. 2015, section B.1: N(0, std^2), except orthogonal recurrent matrices and zero biases.

    Recurrent matrices, which are orthogonal already, and norms stay unchanged. In the paper ``std`` is 0.01;
    ``attention_std``, for W_a and U_a, is 0.001, and V_a is 0.
    """
    recurrent = {p for module in model.modules() if isinstance(module, Cell) for p in module.parameters(recurse=False)}
    for name, parameter in _parameters(model):
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter not in recurrent:
            nn.init.normal_(parameter, std=std)
    for module in model.modules():
        if isinstance(module, AdditiveAttention):
            for layer in module.content_layers():
                nn.init.normal_(layer.weight, std=attention_std)
            nn.init.zeros_(module.energy_weight)


def nematus(model: nn.Module, *, std: NotNegative) -> None:
    """Nematus and dl4mt (their ``norm_weight``): N(0, std^2), except orthogonal square matrices and zero biases.

    Their code has one matrix for each gate and the candidate, except that both gates of the decoder's second GRU share
    one for the context. The readout is never orthogonal. Recurrent matrices, which are orthogonal already, and norms
    stay unchanged; their ``std`` is 0.01.
    """
    gaussian(model, std=std, attention_std=std)
    matrices: list[Tensor] = []
    for name, module in model.named_modules():
        if isinstance(module, AdditiveAttention):
            nn.init.normal_(module.energy_weight, std=std)
            matrices += [layer.weight for layer in module.content_layers()]
        elif isinstance(module, MeanState):
            matrices.append(module.projection.weight)
        elif isinstance(module, Cell) and module.reads_input:
            shared = isinstance(module, GRUCell) and name == "decoder.context_cell"
            size = module.hidden_dim
            matrices += module.input_projection.weight.split([2 * size, size] if shared else size)
    for matrix in matrices:
        if matrix.shape[0] == matrix.shape[1]:
            nn.init.orthogonal_(matrix)


def _parameters(model: nn.Module) -> list[tuple[str, Tensor]]:
    norms = {p for module in model.modules() if isinstance(module, nn.LayerNorm) for p in module.parameters()}
    return [(name, parameter) for name, parameter in model.named_parameters() if parameter not in norms]


INITS: Mapping[str, Callable[..., None]] = {
    f"softsearch.models.{each.__name__}": each for each in (uniform, gaussian, nematus)
}
