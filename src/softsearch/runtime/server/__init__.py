"""Server core: lines of many clients are queued, batched together and translated by worker processes."""
