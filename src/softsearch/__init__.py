"""softsearch: a lab and a torch-free runtime for neural machine translation."""

__version__ = "0.1.0"
