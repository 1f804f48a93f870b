"""What our own extras also use of report; packages of others use the public names of ``softsearch.report``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("softsearch.report", __file__)
