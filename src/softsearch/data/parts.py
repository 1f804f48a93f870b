"""What our own extras also use of data; packages of others use the public names of ``softsearch.data``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("softsearch.data", __file__)
