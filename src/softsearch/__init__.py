"""softsearch: a lab and a torch-free runtime for neural machine translation.

>>> from softsearch import Translator
>>> translator = Translator("exports/demo")
>>> translations = translator.translate(["one two three", "ten"], beam=5)
>>> best, score = translations[0].text, translations[0].score
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softsearch.errors import (
        BundleError,
        CheckpointError,
        ConfigError,
        CorpusError,
        InputError,
        SoftsearchError,
    )
    from softsearch.runtime.bundle import Bundle
    from softsearch.runtime.translation import Translation
    from softsearch.runtime.translator import Translator

__version__ = "0.1.0"
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
_MODULES = {"Bundle": "runtime.bundle", "Translation": "runtime.translation", "Translator": "runtime.translator"}


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used, so that importing the package costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'softsearch' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"softsearch.{_MODULES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
