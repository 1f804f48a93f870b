"""Loggers of metrics, tables and images: CSV, W&B and TensorBoard."""
