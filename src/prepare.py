"""Prepares a run's data: python src/prepare.py [the options of train.py] [processes=N]; see configs/prepare.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("prepare", "softsearch.app.prepare.prepare")
