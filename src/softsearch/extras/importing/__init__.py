"""``softsearch import``: models of other programs as runs of this lab, one module for each family."""
