"""Compares runs: the same as ``softsearch compare``; see configs/compare.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("compare")
