"""Tests for your own models: the contract with search, training and export.

A test module takes them all with ``from softsearch.testing.contract import *`` and ``from softsearch.testing.export
import *``, and defines the fixture ``model``, such as by :func:`softsearch.testing.models.small_model`.
"""

import pytest

pytest.register_assert_rewrite("softsearch.testing.contract", "softsearch.testing.export")
