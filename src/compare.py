"""Compares runs: python src/compare.py runs='[logs/a,logs/b]', or a glob as in runs='logs/train/*'.

See configs/compare.yaml.
"""

from softsearch.app.start import start

if __name__ == "__main__":
    start("compare", "softsearch.app.compare.compare.compare")
