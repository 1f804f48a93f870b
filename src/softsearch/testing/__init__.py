"""Tests for custom models: the contract with search, training and export.

A test module imports them all with ``from softsearch.testing.contract import *`` and
``from softsearch.testing.export import *``, and defines the fixture ``model``, for example with
:func:`softsearch.testing.models.small_model`.
"""

import pytest

pytest.register_assert_rewrite("softsearch.testing.contract", "softsearch.testing.export")
