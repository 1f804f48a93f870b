"""Scores a checkpoint: python src/evaluate.py ckpt=RUN/checkpoints/best.ckpt [key=value ...].

See configs/evaluate.yaml.
"""

from softsearch.app.start import start

if __name__ == "__main__":
    start("evaluate", "softsearch.app.evaluate.evaluate.evaluate")
