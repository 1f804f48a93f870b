"""Builds a dictionary for unknown words: python src/dictionary.py ckpt=RUN/checkpoints/best.ckpt out=FILE.tsv.

See configs/dictionary.yaml.
"""

from softsearch.app.start import start

if __name__ == "__main__":
    start("dictionary", "softsearch.app.dictionary.dictionary")
