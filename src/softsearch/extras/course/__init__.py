"""The course of ``notebooks/``: exercises that compare a reader's function with the lab's.

>>> from softsearch.extras.course import check
>>> check("bleu_precision", my_function)
"""

from softsearch.extras.course.verdict import check

__all__ = ["check"]
