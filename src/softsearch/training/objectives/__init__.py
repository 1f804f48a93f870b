"""What a training step minimises: one file per method."""
