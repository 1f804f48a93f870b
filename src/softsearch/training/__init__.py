"""Training and evaluation through Lightning."""
