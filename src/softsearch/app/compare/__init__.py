"""The command ``compare``."""
