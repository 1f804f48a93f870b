"""Tests for custom models: the contract with search, training and export.

A test module imports them all with ``from softsearch.testing.contract import *`` and
``from softsearch.testing.export import *``, and defines the fixture ``model``, for example with
``softsearch.testing.small_model``.
"""

import lazy_loader
import pytest

pytest.register_assert_rewrite("softsearch.testing.contract", "softsearch.testing.export")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
