"""From a trained model to ONNX graphs that compute the same."""
