"""Metrics, tables and pictures as CSV and in W&B and TensorBoard."""
