"""The deployed half: bundles of ONNX graphs and tokenizers, translated without torch."""
