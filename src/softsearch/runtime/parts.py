"""What our own extras also use of the runtime; packages of others use the public names of ``softsearch.runtime``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("softsearch.runtime", __file__)
