"""``evaluate``: translates and scores a test set, and writes a report."""
