"""``train``: fits a model from a config."""
