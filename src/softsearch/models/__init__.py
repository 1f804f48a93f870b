"""The architectures, in plain PyTorch: one Encoder and one Decoder interface for all of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
