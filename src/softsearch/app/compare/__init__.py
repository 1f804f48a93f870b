"""``compare``: many runs side by side."""
