"""Programs built on the core; none imports another, and the core imports none."""
