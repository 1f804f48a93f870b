"""What our own extras also use of training; packages of others use the public names of ``softsearch.training``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("softsearch.training", __file__)
