"""``sweep``, ``tune`` and ``compare``: options searched with Optuna, and results side by side."""
