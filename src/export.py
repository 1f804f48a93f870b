"""Exports a checkpoint: python src/export.py ckpt=RUN/checkpoints/best.ckpt out=exports/NAME [key=value ...].

See configs/export.yaml.
"""

from softsearch.app.start import start

if __name__ == "__main__":
    start("export", "softsearch.app.export.export")
