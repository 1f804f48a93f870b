"""Evaluates checkpoints and bundles on a test set: the same as ``softsearch evaluate``; see configs/evaluate.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("evaluate")
