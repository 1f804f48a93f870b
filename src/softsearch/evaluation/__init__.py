"""Measuring translations: metrics, bootstrap, alignments, overlap; no Hydra and no drawing."""
