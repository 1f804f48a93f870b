"""Searches for good settings: the same as ``softsearch sweep``; see configs/sweep.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("sweep")
