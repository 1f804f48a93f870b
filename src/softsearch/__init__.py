"""softsearch: a lab and a torch-free runtime for neural machine translation.

>>> from softsearch import Translator
>>> translator = Translator("exports/demo")
>>> translations = translator.translate(["one two three", "ten"], beam=5)
>>> best, score = translations[0].text, translations[0].score
"""

import os

import lazy_loader

# ONNX Runtime's wheels report versions, hashes of graphs and times to Microsoft from 1.29 on, unless this is set when
# they are imported. Who wants that sets it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.2.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
