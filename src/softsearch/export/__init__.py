"""Exports a trained model as ONNX graphs that compute the same numbers."""
