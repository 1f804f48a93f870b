"""The deployed half: bundles of ONNX graphs and tokenizers, translated without torch."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
