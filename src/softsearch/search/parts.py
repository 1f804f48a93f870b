"""What our own extras also use of search; packages of others use the public names of ``softsearch.search``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("softsearch.search", __file__)
