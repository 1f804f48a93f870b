"""Calibration: records the ranges of a bundle's activations while it translates."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from softsearch.export.quantization import LEVELS, Range, product_inputs
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.graph_session import Graph, open_graph, open_session
from softsearch.runtime.manifest import DECODER_STEP, ENCODER
from softsearch.runtime.session import OnnxStepFunction

_VALUES = 128  # values of an activation to keep from each run
_CUTS = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3)  # shares of values to try to clip at each end


class Calibration(OnnxStepFunction):
    """A float32 bundle that records the activations that its weights are multiplied by; for one thread."""

    def __init__(self, bundle: Bundle) -> None:
        super().__init__(bundle)
        self._seen: dict[str, dict[str, _Values]] = {ENCODER: {}, DECODER_STEP: {}}
        self._encoder = self._step = None  # their memory is needed
        self._encoder, self._step = (
            _Session(open_graph(bundle.files, file), seen) for file, seen in self._seen.items()
        )

    def ranges(self) -> dict[str, dict[str, Range]]:
        """Returns the range of each activation by file and name, after sentences have been translated."""
        return {file: {name: values.range() for name, values in seen.items()} for file, seen in self._seen.items()}


class _Session:
    """An ONNX Runtime session that also fetches the activations to record."""

    def __init__(self, graph: Graph, seen: "dict[str, _Values]") -> None:
        model = onnx.load_from_string(graph.model)
        self.seen = seen
        self.seen.update((name, _Values()) for name in product_inputs(graph))
        outputs = {value.name for value in model.graph.output}
        model.graph.output.extend(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in seen if name not in outputs
        )
        self.session = open_session(graph._replace(model=model.SerializeToString()), "the graph to calibrate")

    def run(self, outputs: list[str], feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Runs the graph like an ``InferenceSession``."""
        names = list(dict.fromkeys([*outputs, *self.seen]))  # some activations are also outputs
        values = dict(zip(names, self.session.run(names, feeds), strict=True))
        for name, seen in self.seen.items():
            seen.add(values[name])
        return [values[name] for name in outputs]


class _Values:
    """Recorded values of an activation."""

    def __init__(self) -> None:
        self.low = self.high = 0.0  # 0 must be one of the levels
        self.axes = 0
        self.sample: list[NDArray[np.float32]] = []
        self.rng = np.random.default_rng(0)

    def add(self, values: NDArray[np.float32]) -> None:
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        self.axes = values.ndim
        self.sample.append(self.rng.choice(values.reshape(-1), _VALUES))

    def range(self) -> Range:
        """Returns the range, clipped or not, that represents the values in 8 bits with the least mean squared error."""
        sample = np.concatenate(self.sample)

        def error(ends: tuple[float, float]) -> float:
            step = (ends[1] - ends[0]) / LEVELS or 1.0
            return float(np.square(np.rint(sample.clip(*ends) / step) * step - sample).mean())

        lows, highs = np.minimum(np.quantile(sample, _CUTS), 0), np.maximum(np.quantile(sample, 1 - np.array(_CUTS)), 0)
        low, high = min([(self.low, self.high), *zip(lows.tolist(), highs.tolist(), strict=True)], key=error)
        return Range(low, high, self.axes)
