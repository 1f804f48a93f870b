"""softsearch: a lab and a torch-free runtime for neural machine translation.

>>> from softsearch import Translator
>>> translator = Translator("exports/demo")
>>> translations = translator.translate(["one two three", "ten"], beam=5)
>>> best, score = translations[0].text, translations[0].score
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softsearch.errors import BundleError, CheckpointError, ConfigError, CorpusError, InputError, SoftsearchError
    from softsearch.runtime.bundle import Bundle
    from softsearch.runtime.translation import Translation
    from softsearch.runtime.translator import Translator

# ONNX Runtime's wheels report versions, hashes of graphs and times to Microsoft from 1.29 on, unless this is set when
# they are imported. Who wants that sets it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.2.0"
__all__ = [
    "Bundle",
    "BundleError",
    "CheckpointError",
    "ConfigError",
    "CorpusError",
    "InputError",
    "SoftsearchError",
    "Translation",
    "Translator",
]


def __getattr__(name: str) -> object:
    """Imports a public class on its first use, so that importing the package is fast."""
    if name not in __all__:
        raise AttributeError(f"module 'softsearch' has no attribute {name!r}")
    module = "errors" if name.endswith("Error") else f"runtime.{name.lower()}"
    return getattr(import_module(f"softsearch.{module}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
