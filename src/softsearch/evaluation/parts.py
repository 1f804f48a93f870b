"""What our own extras also use of evaluation; packages of others use the public names of ``softsearch.evaluation``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("softsearch.evaluation", __file__)
