"""Searches for good settings: python src/sweep.py sweep=NAME [trials=N] [key=value ...]; see configs/sweep.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("sweep", "softsearch.app.sweep.sweep.sweep")
