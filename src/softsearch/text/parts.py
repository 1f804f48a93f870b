"""What our own extras also use of text; packages of others use the public names of ``softsearch.text``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("softsearch.text", __file__)
