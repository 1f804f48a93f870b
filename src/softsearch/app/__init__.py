"""The commands of the lab: the only home of Hydra. What is exported is for our own extras and may change."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
