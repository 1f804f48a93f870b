"""Trains a model: python src/train.py model=rnnsearch data=multi30k [key=value ...]; see configs/train.yaml."""

from softsearch.app.start import start

if __name__ == "__main__":
    start("train", "softsearch.app.train.train.train")
