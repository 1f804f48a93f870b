"""``evaluate``: translates and scores a test set into a report."""
