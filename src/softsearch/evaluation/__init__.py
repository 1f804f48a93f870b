"""Measurement of translations: metrics, bootstrap, alignments, overlap; without Hydra and without drawing."""
