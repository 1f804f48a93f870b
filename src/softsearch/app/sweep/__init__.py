"""``sweep``: hyperparameter search with Optuna."""
