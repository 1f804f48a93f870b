"""Text in the lab and the runtime: strict parallel files, cleaning, tokenizers, special tokens."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
