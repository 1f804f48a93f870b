"""Averages checkpoints: the same as ``softsearch average``; see configs/average.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("average")
