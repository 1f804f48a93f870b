"""Trains a model: the same as ``softsearch train``; see configs/train.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("train")
