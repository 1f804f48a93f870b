"""Programs that stand on the core, each on its own: none knows another, and the core knows none."""
