"""Training objectives, one file per method."""
