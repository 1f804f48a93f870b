"""Drawing of the report page, charts, heatmaps and the model card."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
